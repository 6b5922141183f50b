// SPDX-License-Identifier: Apache-2.0

package import BenchSupport
import Foundation

/// What it costs that a client is the same one on all its connections.
extension Scale {
  // MARK: - Memory

  /// Bytes of allocated memory in the server for each client, beyond its connection.
  package struct Identities: Codable {
    /// With an identity of its own.
    package let identity: Double
    /// With an identity, a principal of its own and a credential that expires.
    package let principal: Double

    package var line: String {
      String(
        format: "a client beyond its connection: %.0f bytes with an identity, %.0f with a "
          + "principal too", identity, principal)
    }
  }

  package func identities(connections: Int) throws -> Identities {
    let bare = try heap(connections, [], [])
    let identity = try heap(connections, [], ["--identities"])
    let principal = try heap(
      connections, ["--validity=3600"], ["--identities", "--principals"])
    return Identities(identity: identity - bare, principal: principal - bare)
  }

  /// The growth of the server's allocated memory with each connection.
  private func heap(
    _ connections: Int, _ server: [String], _ client: [String]
  ) throws -> Double {
    let (server, port) = try startServer(server)
    defer { server.end() }
    let before = try told(by: server)
    let greeter = try Child(
      [program, "greet", "--port=\(port)", "--connections=\(connections)"] + client)
    defer { greeter.end() }
    guard greeter.readLine() != nil else { throw BenchError("the connections ended early") }
    return Double(try told(by: server).heap - before.heap) / Double(connections)
  }

  // MARK: - Renewals

  /// What a renewal costs.
  package struct Renewals: Codable {
    package let count: UInt64
    /// Frames that came for each frame with a credential.
    package let answers: Double
    package let clientAllocations: Double
    package let serverAllocations: Double

    package var line: String {
      String(
        format: "a renewal: a frame and %.2f answers; allocations: client %.1f, server %.1f "
          + "(%llu renewals)",
        answers, clientAllocations, serverAllocations, count)
    }
  }

  /// Lets clients renew credentials that are valid for two seconds.
  package func renewals(connections: Int, seconds: Double) throws -> Renewals {
    let (server, port) = try startServer(["--validity=2"])
    defer { server.end() }
    let client = try Child([
      program, "renew", "--port=\(port)", "--connections=\(connections)", "--seconds=\(seconds)",
    ])
    defer { client.end() }
    let before = try client.read(RenewOutcome.self, of: "the client")
    let first = try told(by: server)
    let after = try client.read(RenewOutcome.self, of: "the client")
    let last = try told(by: server)
    let count = after.renewals - before.renewals
    func each(_ last: UInt64, _ first: UInt64) -> Double { Double(last - first) / Double(count) }
    return Renewals(
      count: count, answers: each(after.answers, before.answers),
      clientAllocations: each(after.allocations, before.allocations),
      serverAllocations: each(last.allocations, first.allocations))
  }

  // MARK: - Pushes

  /// What a push costs among so many clients of as many principals, in virtual time.
  package func push(among clients: Int) throws -> PushOutcome {
    let child = try Child([program, "principals", "--clients=\(clients)"])
    defer { child.end() }
    return try child.read(PushOutcome.self, of: "the simulation")
  }
}
