// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkServer
@testable import LongLinkTLS

/// What peers make a server hold before their connections are open.
@Suite struct UnopenedTests {
  /// What a peer sends before it falls silent.
  enum Silence: String, Sendable, CaseIterable, Codable {
    /// The beginning of the largest hello, and nearly all of the largest record behind it.
    case hello
    /// The beginning of the largest message with its certificates, and nearly all of the largest
    /// record after it.
    case certificates
    /// All of its handshake but the proof that the certificate is its own.
    case proof
    /// Nearly all of the largest record, after the handshake.
    case record
  }

  /// The certificate that hostile clients have, with a chain of others behind it, as files.
  private static func clientFiles(in folder: Folder, chain: Int, names: Int) throws -> (
    chain: String, key: String
  ) {
    let other = Certificates.make(
      nil,
      ["DNS:short"]
        + (0..<names).map {
          "DNS:host-\($0).of.a.certificate.that.is.as.large.as.it.can.be."
            + Array(repeating: "and-has-long-names", count: 7).joined(separator: ".")
        })
    var certificates = Certificates.client.certificate
    for _ in 0..<chain { certificates += other.certificate }
    return (
      try folder.write("chain.pem", certificates), try folder.write("key", Certificates.client.key)
    )
  }

  /// The records that bytes are made of.
  private static func records(_ bytes: [UInt8]) -> [[UInt8]] {
    var (records, rest) = ([[UInt8]](), bytes[...])
    while rest.count >= 5 {
      let head = rest.prefix(5).map { Int($0) }
      let size = 5 + (head[3] << 8 | head[4])
      records.append(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return records
  }

  /// Lets a new peer of a server send what it sends, and returns the server's stream.
  private static func begin(
    _ silence: Silence, _ server: TLSServer, _ client: RawTLS, on loop: EventLoop
  ) throws -> Stage {
    let stage = Stage(on: loop, server, client: client)
    var sent: [UInt8] = []
    switch silence {
    case .hello:
      let largest = 24_576
      let body =
        [1, 0, UInt8(largest >> 8), UInt8(largest & 255)] + [UInt8](repeating: 3, count: 60)
      sent = [22, 3, 1, 0, 64] + body
      sent += [22, 3, 3, 0x48, 0] + [UInt8](repeating: 0, count: 18_431)
    case .certificates, .proof:
      _ = client.handshake()
      stage.send(client.takeOutput())
      client.receive(stage.below.takeOutput())
      _ = client.handshake()
      let records = records(client.takeOutput())
      if silence == .certificates {
        // What comes first is for old boxes on the path.
        sent = Array(records.prefix(2).joined())
        sent += [23, 3, 3, 0x48, 0] + [UInt8](repeating: 0, count: 18_431)
      } else {
        sent = Array(records.dropLast(2).joined())
      }
    case .record:
      stage.shakeHands()
      sent = Array(client.write([UInt8](repeating: 1, count: 16_384)).dropLast())
    }
    stage.send(sent)
    stage.readAll()
    return stage
  }

  /// Resident memory, in bytes.
  private static var resident: Int {
    get throws {
      let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
      return (line?.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0) * 1_024
    }
  }

  /// Attacks with this many peers, and prints what each makes the server's process hold.
  private static func attack(_ silence: Silence) async throws {
    // Many, so that nothing else matters. Certificates take time to verify.
    let peers = silence == .proof ? 250 : 1_000
    let folder = try Folder()
    let files = try clientFiles(
      in: folder, chain: 7, names: silence == .proof ? 5 : 7)
    let held = try await Stage.run { loop in
      let server = try TLSServer(
        .with { configuration in
          let isAsked = silence == .certificates || silence == .proof
          configuration.clientCertificates =
            isAsked ? .required(.only(Certificates.authority)) : .none
        })
      // What the first one leaves behind is not for each.
      let settings = RawTLS(
        chain: files.chain, key: files.key, fragment: silence == .certificates ? 512 : nil)
      var stages = [try begin(silence, server, RawTLS(like: settings), on: loop)]
      stages[0].client.free()
      let before = try resident
      for _ in 0..<peers {
        let stage = try begin(silence, server, RawTLS(like: settings), on: loop)
        // An issue of each would take minutes to report.
        precondition(stage.ending == nil, "\(silence): \(stage.ending ?? "")")
        precondition((stage.stream.layer?.security == nil) == (silence != .record))
        // Its peer's memory is not the server's.
        stage.client.free()
        stages.append(stage)
      }
      let held = try resident - before
      for stage in stages { stage.stream.close() }
      return held / peers
    }
    print("HELD \(held)")
  }

  private static let problem: String? =
    FileManager.default.fileExists(atPath: "/proc/self/status") ? nil : "there is no /proc"

  /// In a process of its own, whose memory nobody else uses. The numbers of the limits are about a
  /// fifth above what is measured; the process's memory includes what the allocator wastes.
  @Test(.unless(problem), arguments: Silence.allCases)
  func `a connection that is not open makes the server hold the documented number at most`(
    silence: Silence
  ) async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardOutputContent]
    ) { [silence] in
      try await UnopenedTests.attack(silence)
    }
    let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
    let line = try #require(output.split(separator: "\n").last { $0.hasPrefix("HELD ") })
    let held = try #require(Int(line.dropFirst(5)))
    print("a client silent before its \(silence.rawValue): \(held) bytes")
    let limit =
      silence == .record ? UnopenedConnection.openSecurity : UnopenedConnection.security
    #expect(held <= limit, "\(silence)")
    #expect(held > limit / 8, "the attack has reached the server")
  }

  @Test func `a hello that is larger than any client's is refused by its length`() async throws {
    try await Stage.run { loop in
      for cut in [1, 2, 3, 4, 60] {
        let stage = try Stage(on: loop)
        let message = [1, 0, 0x60, 1] + [UInt8](repeating: 3, count: 60)
        for part in [message[..<cut], message[cut...]] where !part.isEmpty {
          stage.send([22, 3, 1, 0, UInt8(part.count)] + part)
        }
        stage.readAll()
        #expect(stage.ending == "damaged")
        #expect(stage.stream.layer?.securityFailure?.detail.contains("24 KiB") == true)
        #expect((stage.stream.layer?.heldBytes ?? 0) == 0)
        stage.stream.close()
      }
    }
  }

  @Test func `a handshake has a bounded number of records`() async throws {
    for count in [500, 520] {
      try await Stage.run { loop in
        let stage = try Stage(on: loop)
        // Nobody needs so many, and each costs a call.
        let message: [UInt8] = [1, 0, 0x10, 0] + [UInt8](repeating: 3, count: count - 4)
        stage.send(message.flatMap { [22, 3, 1, 0, 1, $0] })
        stage.readAll()
        #expect(stage.ending == (count < 512 ? nil : "damaged"))
        if count > 512 {
          #expect(stage.stream.layer?.securityFailure?.detail.contains("too many records") == true)
        }
        stage.stream.close()
      }
    }
  }

  @Test func `the encrypted end of a handshake of TLS 1.2 is not taken for a hello`() async throws {
    try await Stage.run { loop in
      let pair = Certificates.make(.server, ["DNS:a"], keyKind: .p256)
      let stage = try Stage(
        on: loop, .with(pair) { $0.minimumVersion = .tls12 }, client: RawTLS(version: 0x0303))
      _ = stage.client.handshake()
      stage.send(stage.client.takeOutput())
      stage.client.receive(stage.below.takeOutput())
      _ = stage.client.handshake()
      var records = Self.records(stage.client.takeOutput())
      try #require(records.map { $0[0] } == [22, 20, 22])
      // One in 256 begins like this, with the header of a large hello.
      records[2].replaceSubrange(5..<9, with: [1, 0xFF, 0xFF, 0xFF])
      stage.send(Array(records.joined()))
      stage.readAll()
      let detail = try #require(stage.stream.layer?.securityFailure?.detail)
      #expect(detail.contains("broke a rule of TLS"), "\(detail)")
      stage.stream.close()
    }
  }

  @Test(arguments: [(40, 14), (12, 1)])
  func `a client with too many or too large certificates is refused`(
    chain: Int, names: Int
  ) async throws {
    let folder = try Folder()
    let files = try Self.clientFiles(in: folder, chain: chain, names: names)
    try await Stage.run { loop in
      let server = try TLSServer(
        .with { $0.clientCertificates = .required(.only(Certificates.authority)) })
      let stage = Stage(
        on: loop, server,
        client: RawTLS(chain: files.chain, key: files.key))
      #expect(!stage.shakeHands())
      stage.readAll()
      #expect(["damaged", "invalidCertificate"].contains(stage.ending))
      stage.stream.close()
    }
  }

  @Test func `5000 handshakes that stand still keep no client away`() async throws {
    var parts = try World.Parts()
    parts.server.addresses.maxConnectionRate = 1_000_000
    parts.server.addresses.maxConnections = 1_000_000
    _ = try await World.simulate(parts) { [parts] world in
      guard let simulation = world.simulation else { return }
      let loop = simulation.eventLoop(named: "hostile")
      let honest = simulation.eventLoop(named: "honest")
      let hello = { () -> [UInt8] in
        let client = RawTLS()
        _ = client.handshake()
        return client.takeOutput()
      }()
      var half: [SimulatedClient] = []
      for index in 0..<5_000 {
        let client = try await SimulatedClient.connect(to: world.server.addresses[0], on: loop)
        half.append(client)
        switch index % 3 {
        case 0: break
        case 1: client.send(bytes: Array(hello.dropLast()))
        // The server's certificate comes, and nothing follows.
        default: client.send(bytes: hello)
        }
        guard index % 1_000 == 0 else { continue }
        #expect(try await world.client.request(World.echo, [1]) == [1])
        var configuration = parts.client
        configuration.security = parts.clientSecurity
        let other = try LongLinkClient(configuration, on: honest)
        #expect(try await other.request(World.echo, [2]) == [2])
        await other.close()
      }
      let counters = await world.server.counters()
      #expect(counters.handshakes <= 1_000)
      #expect(counters.handshakesEvicted + UInt64(counters.handshakes) > 1_000)
      #expect(await world.client.counters().connects == 1)
      for client in half { client.close() }
    }
  }
}
