// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// Scripted peers over TLS, and what they can do below it.
@Suite struct ScriptedPeerTests {
  private static let address = SocketAddress.ipv4(10, 0, 0, 1, port: 7_000)

  /// What a client of a scripted server has seen.
  private struct Outcome: Sendable {
    var body: [UInt8] = []
    var error: LongLinkError?
    var endings: [ConnectionEnding] = []
    var duration = Duration.zero
  }

  /// Runs a scripted server of an echo over TLS, and a real client that sends it one request.
  private func ask(
    _ server: TLSServerConfiguration = .with(), _ client: TLSClientConfiguration = .trusting(),
    body: [UInt8] = [1, 2, 3], script: @escaping @Sendable (SimulatedServer) -> Void
  ) async throws -> Outcome {
    let simulation = Simulation(seed: 2)
    let outcome = try await simulation.run {
      let scripted = try await SimulatedServer.start(
        on: simulation.eventLoop(named: "server"), at: Self.address, security: .tls(server))
      scripted.on(1) { .reply($0.body) }
      script(scripted)
      var configuration = ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)])
      configuration.security = try .tls(client)
      configuration.logger.logLevel = .critical
      configuration.heartbeat = Heartbeat(interval: .seconds(4), timeout: .seconds(2))
      configuration.timeouts.request = .seconds(60)
      let client = try LongLinkClient(configuration, on: simulation.eventLoop(named: "client"))
      var outcome = Outcome()
      let start = simulation.now
      do throws(LongLinkError) {
        try await client.connect()
        outcome.body = try await client.request(
          1, body, options: RequestOptions(retry: .never))
      } catch {
        outcome.error = error
      }
      outcome.duration = .nanoseconds(simulation.now.nanoseconds - start.nanoseconds)
      await client.close()
      scripted.thaw()
      outcome.endings = try await scripted.waitForEndings(1)
      await scripted.stop()
      try await simulation.sleep(for: .seconds(10))
      return outcome
    }
    #expect(simulation.openStreams == [])
    #expect(simulation.pendingTimers == [])
    return outcome
  }

  @Test func `a scripted server speaks TLS in a simulation`() async throws {
    let outcome = try await ask { _ in }
    #expect(outcome.body == [1, 2, 3])
    #expect(outcome.endings.first?.reason == .endedByPeer)
    #expect(outcome.endings.first?.isCutOff == false)
  }

  @Test func `scripted peers speak TLS over loopback, and know how they are secured`() async throws
  {
    let server = try await SimulatedServer.start(
      security: .tls(
        .with { $0.clientCertificates = .required(.only(Certificates.authority)) }))
    server.on(1) { .reply($0.body) }
    let client = try await SimulatedClient.connect(
      to: server.address,
      security: .tls(.trusting { $0.certificate = TLSIdentity(Certificates.client) }))
    try await client.sayHello()
    let body = [UInt8](repeating: 9, count: 50_000)
    #expect(try await client.request(1, body).body == body)
    #expect(client.security?.version == "TLSv1.3")
    #expect(client.security?.applicationProtocol == "longlink/1")
    #expect(
      server.security[1]?.peerCertificate?.names
        == [.uri("spiffe://test/client"), .dns("client.test")])
    client.close()
    let ending = try await server.waitForEndings(1)[0]
    #expect(ending.reason == .endedByPeer && !ending.isCutOff)
    await server.stop()
  }

  @Test func `a scripted client speaks TLS with a real server`() async throws {
    let parts = try World.Parts()
    let (texts, _) = try await World.simulate(parts) { world in
      guard let simulation = world.simulation else { return [] as [String] }
      let loop = simulation.eventLoop(named: "scripted")
      var texts: [String] = []
      let security = try ClientSecurity.tls(.trusting())
      for _ in 0..<2 {
        let client = try await SimulatedClient.connect(
          to: Self.address, on: loop, security: security)
        try await client.sayHello()
        texts.append(try await client.request(World.identity).text)
        // Without TLS's end, which costs nobody anything where no frame is cut.
        client.endBelowSecurity()
        _ = try await client.waitForEnd()
        client.close()
      }
      return texts
    }
    #expect(texts == ["false 0", "true 0"])
  }

  @Test func `a server that ends without TLS's end is found out`() async throws {
    let cut = try await ask { server in
      server.on(1, .sequence([.raw([1, 2, 3]), .endBelowSecurity]))
    }
    #expect(cut.error?.closeReason == .securityFailed(.cutOff))
    #expect(cut.error?.delivery == .sent)
    let ended = try await ask { $0.on(1, .sequence([.raw([1, 2, 3]), .end])) }
    #expect(ended.error?.closeReason != .securityFailed(.cutOff))
    #expect(ended.error?.delivery == .sent)
  }

  @Test func `a server that is silent at any byte costs a client no more than its timeouts`()
    async throws
  {
    for position in [0, 1, 5, 90, 130, 400, 700] {
      let outcome = try await ask { $0.securityFaults = [.silence(afterBytes: position)] }
      #expect(outcome.error?.code == .connectFailed, "\(position)")
      #expect(outcome.error?.delivery == .notSent, "\(position)")
      // The connect timeout is ten seconds.
      #expect((.seconds(9)...(.seconds(11))).contains(outcome.duration), "\(position)")
    }
  }

  @Test func `a stream of records may be cut at any byte`() async throws {
    var answered = 0
    var failures: Set<SecurityFailure.Code> = []
    for position in stride(from: 0, to: 3_000, by: 61) {
      let isReset = position % 2 == 0
      let outcome = try await ask(body: Array(repeating: 5, count: 1_200)) {
        $0.securityFaults = [isReset ? .reset(afterBytes: position) : .end(afterBytes: position)]
      }
      if outcome.error == nil { answered += 1 }
      if let failure = outcome.error?.securityFailure { failures.insert(failure.code) }
      #expect(outcome.body.count == (outcome.error == nil ? 1_200 : 0), "\(position)")
      #expect(outcome.duration < .seconds(2), "\(position): \(outcome)")
    }
    // The handshake and the answer have about 2,400 bytes.
    #expect((3...15).contains(answered))
    #expect(failures == [.cutOff])
  }

  /// Positions before the handshake, within it, and behind it.
  @Test(arguments: [0, 122, 1_000])
  func `records that are too long, or none at all, end the connection`(
    position: Int
  ) async throws {
    let long: [UInt8] = [23, 3, 3, 0xFF, 0xFF] + Array(repeating: 0, count: 70_000)
    let none: [UInt8] = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
    for bytes in [long, none] {
      let outcome = try await ask { server in
        if position < 1_000 {
          server.securityFaults = [.insert(bytes, afterBytes: position)]
        } else {
          server.on(1, .rawBelowSecurity(bytes))
        }
      }
      let code = outcome.error?.securityFailure?.code
      let expected: [SecurityFailure.Code] = [.damaged, .plainPeer]
      if position < 1_000 {
        #expect(code.map(expected.contains) == true, "\(outcome)")
        #expect(outcome.error?.delivery == .notSent)
      } else {
        #expect(outcome.error?.closeReason == .securityFailed(.damaged), "\(outcome)")
        #expect(outcome.error?.delivery == .sent)
      }
      #expect(outcome.duration < .seconds(2))
    }
  }

  @Test func `a record that comes slowly is life, as long as a frame may take`() async throws {
    // The client's heartbeat finds a silent peer after six seconds.
    let record: [UInt8] = [23, 3, 3, 0x40, 0]
    let outcome = try await ask { server in
      server.answersPings = false
      let trickle = (0..<100).map { ServerAction.delay(.seconds($0), then: .rawBelowSecurity([0])) }
      server.on(1, .sequence([.rawBelowSecurity(record)] + trickle))
    }
    #expect(outcome.error?.closeReason == .heartbeatLost)
    // A frame may take thirty seconds.
    #expect((.seconds(34)...(.seconds(40))).contains(outcome.duration), "\(outcome)")
  }

  @Test func `a frozen server answers no handshake`() async throws {
    let outcome = try await ask { $0.freeze() }
    #expect(outcome.error?.code == .connectFailed)
    #expect(outcome.duration >= .seconds(9))
  }
}
