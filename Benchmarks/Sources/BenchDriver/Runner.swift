// SPDX-License-Identifier: Apache-2.0

package import BenchSupport
package import Foundation

/// The result of one run of one subject.
package struct Run: Codable {
  package let subject: String
  package let work: Work
  package let placement: Placement
  package let round: Int
  package let client: Outcome
  /// The counts and usage of the server in the counted time; nil if it does not report them.
  package let server: ServerOutcome?

  package init(
    subject: String, work: Work, placement: Placement, round: Int, client: Outcome,
    server: ServerOutcome?
  ) {
    self.subject = subject
    self.work = work
    self.placement = placement
    self.round = round
    self.client = client
    self.server = server
  }

  package var rate: Double { Double(client.requests) / client.seconds }

  /// The CPU time of both processes per request, in microseconds.
  package var cpu: Double? {
    server.map {
      (client.cpu / Double(client.requests) + $0.cpu / Double($0.requests)) * 1e6
    }
  }
}

/// Starts a subject's server and client, and collects their results.
package struct Runner {
  /// The folder of the peers' programs.
  package let folder: URL
  package let seconds: Double
  package let warmUp: Double

  package init(folder: URL, seconds: Double, warmUp: Double) {
    self.folder = folder
    self.seconds = seconds
    self.warmUp = warmUp
  }

  package func run(
    _ subject: Subject, _ work: Work, _ placement: Placement, round: Int
  ) throws -> Run {
    switch subject.kind {
    case .redis:
      return try runRedis(work, placement, round)
    case .peer(let program, let serverArguments, let clientArguments):
      let path = URL(fileURLWithPath: program, relativeTo: folder).path
      let load =
        if let direction = work.direction {
          ["stream", "--direction=\(direction)"]
        } else {
          ["load", "--connections=\(work.connections)", "--in-flight=\(work.inFlight)"]
        }
      let (client, server) = try run(
        "\(subject.name), \(work.name)", server: [path, "serve"] + serverArguments,
        client: [path] + load + ["--body=\(work.body)"] + clientArguments, placement)
      return Run(
        subject: subject.name, work: work, placement: placement, round: round, client: client,
        server: server)
    }
  }

  /// Runs a server and a client that keep the contract of `BenchSupport`, and checks their results.
  func run(
    _ name: String, server serverCommand: [String], client clientCommand: [String],
    _ placement: Placement
  ) throws -> (Outcome, ServerOutcome) {
    let server = try Child(serverCommand, placement)
    defer { server.end() }
    guard let line = server.readLine(), let port = Runner.port(line) else {
      throw BenchError("\(name): its server did not start")
    }
    let client = try Child(
      clientCommand + [
        "--port=\(port)", "--warm-up=\(warmUp)", "--seconds=\(seconds)",
      ], placement)
    defer { client.end() }
    guard client.readLine() == "counting" else {
      throw BenchError("\(name): its client failed")
    }
    try server.write("\n")
    let begin = try server.read(ServerOutcome.self, of: "\(name): its server")
    let outcome = try client.read(Outcome.self, of: "\(name): its client")
    server.closeInput()
    let end = try server.read(ServerOutcome.self, of: "\(name): its server")
    try Runner.check(outcome, end, name)
    return (outcome, end.since(begin))
  }

  /// Sends this many items of 64 KiB to a client that pauses at random, and returns by how much
  /// the memory of both sides grew.
  package func growth(items: Int) throws -> MemoryGrowth {
    let program = URL(fileURLWithPath: "LongLinkPeer", relativeTo: folder).path
    let (client, server) = try run(
      "longlink, \(items) items with pauses", server: [program, "serve"],
      client: [program, "stream", "--body=65536", "--items=\(items)"], .free)
    return MemoryGrowth(
      bytes: UInt64(items) * 65_536,
      client: client.peakMemory - min(client.idleMemory ?? 0, client.peakMemory),
      server: server.peakMemory - server.memory)
  }

  /// The port in a server's first line.
  static func port(_ line: String) -> UInt16? {
    line.hasPrefix("listening ") ? UInt16(line.dropFirst(10)) : nil
  }

  /// Checks that the number of responses equals the number of requests.
  package static func check(_ client: Outcome, _ server: ServerOutcome, _ name: String) throws {
    guard client.requests > 0, client.requests <= client.allRequests else {
      throw BenchError("\(name): no response came in the counted time")
    }
    guard client.allRequests == server.requests else {
      throw BenchError(
        "\(name): the client got \(client.allRequests) responses, "
          + "but the server got \(server.requests) requests")
    }
  }
}

/// By how much the memory of a client and a server grew during a stream.
package struct MemoryGrowth: Codable, Sendable {
  /// The bytes of all items.
  package let bytes: UInt64
  /// The peak resident memory above that of an idle connection, in bytes.
  package let client: UInt64
  /// The same, above that at the first item.
  package let server: UInt64

  package var text: String {
    func mebibytes(_ count: UInt64) -> String { String(format: "%.1f", Double(count) / 1_048_576) }
    return "a stream of \(bytes / 1_048_576) MiB to a reader that pauses: client "
      + "+\(mebibytes(client)) MiB, server +\(mebibytes(server)) MiB"
  }
}

extension ServerOutcome {
  /// The difference to an earlier result.
  fileprivate func since(_ begin: ServerOutcome) -> ServerOutcome {
    var later = self
    later.requests -= begin.requests
    later.cpu -= begin.cpu
    later.allocations -= begin.allocations
    later.systemCalls -= begin.systemCalls
    later.memory = min(begin.memory, peakMemory)
    return later
  }
}
