// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// A server that decides about each client before it acts on what the client sends.
@Suite struct AuthenticationTests {
  /// 7 returns the name of the principal, or "nobody".
  static func serve(
    _ stage: Stage, configure: (inout ServerConfiguration) -> Void = { _ in },
    _ authenticate: @escaping @Sendable (AuthenticationRequest) async throws -> Authentication
  ) async throws -> LongLinkServer {
    try await stage.serve { server in
      server.routeBasics()
      server.route(7) { request in Array((request.peer.principal?.name ?? "nobody").utf8) }
    } configure: {
      $0.identity.authenticate = authenticate
      configure(&$0)
    }
  }

  /// The names of the connected principals.
  static func names(of server: LongLinkServer) async -> [String] {
    await server.peers().compactMap { $0.principal?.name }
  }

  /// Accepts clients whose credential is `key-` and a name.
  static func byKey(_ request: AuthenticationRequest) throws -> Authentication {
    guard let credential = request.credential else { throw refusal("no hello") }
    let text = String(decoding: credential, as: UTF8.self)
    guard text.hasPrefix("key-") else { throw refusal("unknown key") }
    return Authentication(Principal(String(text.dropFirst(4))))
  }

  static func refusal(_ reason: String) -> Rejection { Rejection(.unauthenticated, reason) }

  static func raw(_ stage: Stage, _ server: LongLinkServer) async throws -> SimulatedClient {
    try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
  }

  /// The first frame that a server sends.
  private static func first(of client: SimulatedClient) async throws -> WireFrame {
    try await client.wait { !$0.frames.isEmpty }
    return client.received[0].frame
  }

  // MARK: Accepted

  @Test(arguments: TestEnvironment.allCases)
  func `handlers see who the client is`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await Self.serve(stage) { try Self.byKey($0) }
      let client = try stage.client(of: server) {
        $0.identity.credential = { Array("key-ann".utf8) }
        $0.identity.sendsCredentialUnencrypted = true
      }
      try await client.expectName("ann")
      #expect(await server.counters().authentications.accepted == 1)
      #expect(await Self.names(of: server) == ["ann"])
    }
  }

  @Test func `nothing of a client is acted on before the answer`() async throws {
    try await Stage.simulate { stage, _ in
      let (calls, answer) = (Tally<UInt32>(), Latch())
      let server = try await stage.serve { server in
        server.route(9) { request in
          calls.add(request.serial)
          return []
        }
        server.onPush(8) { _, _ in calls.add(0) }
      } configure: {
        $0.identity.authenticate = { request in
          await answer.wait()
          return try Self.byKey(request)
        }
      }
      let client = try await Self.raw(stage, server)
      client.send([
        .hello(credential: Array("key-bob".utf8)), .request(9, serial: 50), .push(8), .ping(),
      ])
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(calls.elements == [] && client.received.isEmpty)
      #expect(await server.counters().connections.framesReceived == 1)
      answer.open()
      #expect(try await client.waitForResponse(to: 50).code == .ok)
      try await client.waitForFrame(.pong)
      #expect(calls.elements == [50, 0])
      #expect(client.received.map(\.frame.kind) == [.welcome, .response, .pong])
    }
  }

  @Test func `what a client sends before the answer stays unread`() async throws {
    try await Stage.simulate { stage, _ in
      let answer = Latch()
      let server = try await Self.serve(stage) { request in
        await answer.wait()
        return try Self.byKey(request)
      }
      let client = try await Self.raw(stage, server)
      client.send(.hello(credential: Array("key-bob".utf8)))
      let body = [UInt8](repeating: 1, count: 60_000)
      for serial: UInt32 in 50..<80 { client.send(.request(1, serial: serial, body)) }
      try await stage.clientLoop.sleep(for: .seconds(1))
      // What came with the hello, in one small read.
      #expect(await server.counters().connections.bytesReceived <= 4_096)
      answer.open()
      #expect(try await client.waitForResponse(to: 79).body == body)
    }
  }

  @Test func `a client without a hello is judged by its address`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await Self.serve(stage) { request in
        #expect(request.credential == nil && request.address != nil && !request.isEncrypted)
        return .anonymous
      }
      let client = try await Self.raw(stage, server)
      client.send([.request(7, serial: 50), .ping()])
      #expect(try await client.waitForResponse(to: 50).body == Array("nobody".utf8))
      #expect(client.record.frames(of: .welcome).isEmpty)
    }
  }

  @Test func `a short link passes the same function`() async throws {
    let seen = Tally<Bool>()
    try await Stage.serving(in: .short) { server in
      server.route(7) { request in Array((request.peer.principal?.name ?? "nobody").utf8) }
    } client: {
      $0.identity.credential = { Array("key-eve".utf8) }
    } server: {
      $0.identity.authenticate = { request in
        seen.add(request.isShortLink)
        return try Self.byKey(request)
      }
    } _: { _, _, client in
      try await client.expectName("eve")
      try await client.expectName("eve")
      #expect(seen.elements == [true, true])
    }
  }

  // MARK: Refused

  @Test(arguments: TestEnvironment.allCases)
  func `a client that is not accepted is told why, and nothing of it runs`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await Self.serve(stage) { try Self.byKey($0) }
      let client = try await Self.raw(stage, server)
      client.send([.hello(credential: [1]), .request(1, serial: 50)])
      let goaway = try #require(try await Self.first(of: client).goAwayFields)
      #expect(goaway.code == .unauthenticated && goaway.reason == "unknown key")
      #expect(goaway.requestsAccepted == 0)
      try await client.waitForEnd()
      let silent = try await Self.raw(stage, server)
      silent.send(.request(1, serial: 50))
      let other = try #require(try await Self.first(of: silent).goAwayFields)
      #expect(other.reason == "no hello")
      try await silent.waitForEnd()
      let counters = await server.counters()
      #expect(counters.connections.handled == 0 && counters.authentications.refused == 2)
      #expect(counters.endings["notAccepted"] == 2)
    }
  }

  @Test func `a failure of the function is not the client's fault`() async throws {
    struct Broken: Error {}
    try await Stage.simulate { stage, _ in
      let calls = Tally<Int>()
      let server = try await Self.serve(stage) { request in
        calls.add(1)
        if calls.elements.count == 1 { throw Broken() }
        return try Self.byKey(request)
      }
      let client = try stage.client(of: server) {
        $0.identity.credential = { Array("key-ann".utf8) }
        $0.identity.sendsCredentialUnencrypted = true
      }
      try await client.expectName("ann")
      let counters = await server.counters().authentications
      #expect(counters.failed == 1 && counters.accepted == 1)
    }
  }

  @Test(arguments: [nil, Duration.seconds(2), .seconds(20)])
  func `a function that takes too long turns the client away`(_ limit: Duration?) async throws {
    try await Stage.simulate { stage, simulation in
      let ends = Latch()
      let server = try await Self.serve(stage) {
        if let limit { $0.identity.timeout = limit }
      } _: { _ in
        await ends.wait()
        return .anonymous
      }
      let client = try await Self.raw(stage, server)
      let begin = simulation.now
      client.send(.hello())
      #expect(try await client.waitForFrame(.goaway).goAwayFields?.code == .draining)
      let time = begin.duration(to: simulation.now)
      #expect(time >= limit ?? .seconds(5))
      #expect(time < (limit ?? .seconds(5)) + .seconds(1))
      try await client.waitForEnd()
      ends.open()
      #expect(await server.counters().authentications.timedOut == 1)
    }
  }

  @Test func `calls that have not returned are bounded, given up or not`() async throws {
    try await Stage.simulate { stage, _ in
      let (calls, ends) = (Tally<Int>(), Latch())
      let server = try await Self.serve(stage) {
        $0.identity.maxAuthentications = 3
      } _: { _ in
        calls.add(1)
        await ends.wait()
        return .anonymous
      }
      var clients: [SimulatedClient] = []
      for _ in 0..<200 {
        let client = try await Self.raw(stage, server)
        client.send(.hello())
        clients.append(client)
      }
      // Given up, the calls go on: they do not look at their cancellation.
      for client in clients.prefix(150) { client.reset() }
      try await stage.until { await server.counters().openConnections == 50 }
      #expect(calls.elements.count == 3)
      for client in clients.suffix(50) { try await client.waitForEnd() }
      #expect(calls.elements.count == 3)
      ends.open()
      let later = try await Self.raw(stage, server)
      try await later.sayHello()
      #expect(calls.elements.count == 4)
    }
  }

  // MARK: Expiry

  @Test func `a connection whose credential has expired is drained`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await Self.serve(stage) {
        $0.identity.credentialGrace = .seconds(3)
      } _: { _ in
        Authentication(Principal("ann"), validity: .seconds(60))
      }
      let client = try await Self.raw(stage, server)
      let welcome = try await client.sayHello()
      #expect(welcome.credentialExpires == .seconds(60))
      let begin = simulation.now
      client.send(.request(2, serial: 50))
      let goaway = try await client.waitForFrame(.goaway).goAwayFields
      #expect(goaway?.code == .unauthenticated)
      #expect(begin.duration(to: simulation.now) >= .seconds(59))
      try await client.waitForEnd()
      let time = begin.duration(to: simulation.now)
      #expect(time >= .seconds(62) && time < .seconds(65))
      #expect(await server.counters().authentications.expired == 1)
    }
  }

  @Test func `the connections of a principal can be ended`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await Self.serve(stage) { try Self.byKey($0) }
      var clients: [String: SimulatedClient] = [:]
      for name in ["ann", "bob", "cid"] {
        clients[name] = try await Self.raw(stage, server)
        try await clients[name]?.sayHello(.hello(credential: Array("key-\(name)".utf8)))
      }
      #expect(await server.endConnections(of: "bob", reason: "out") == 1)
      let goaway = try await clients["bob"]?.waitForFrame(.goaway).goAwayFields
      #expect(goaway?.code == .unauthenticated && goaway?.reason == "out")
      try await clients["bob"]?.waitForEnd()
      #expect(await Self.names(of: server) == ["ann", "cid"])
      #expect(await server.endConnections(of: "dan") == 0)
    }
  }

  @Test func `the connections of a principal can be ended, also those that drain`() async throws {
    try await Stage.simulate { stage, simulation in
      let lanes = (0..<2).map { simulation.eventLoop(named: "lane \($0)") }
      let server = try await stage.serve(
        on: lanes, configure: { $0.identity.authenticate = { try Self.byKey($0) } })
      var clients: [SimulatedClient] = []
      for _ in 0..<4 {
        let client = try await Self.raw(stage, server)
        try await client.sayHello(.hello(credential: Array("key-bob".utf8)))
        client.send(.request(2, serial: 50))
        clients.append(client)
      }
      try await stage.until { await server.counters().requestsRunning == 4 }
      for peer in await server.peers() where peer.id.isMultiple(of: 2) {
        stage.spawn { await server.drain(peer, within: .seconds(1_000)) }
      }
      try await stage.until { clients.count { !$0.record.frames(of: .goaway).isEmpty } == 2 }
      let begin = simulation.now
      #expect(await server.endConnections(of: "bob") == 4)
      for client in clients { try await client.waitForEnd() }
      #expect(begin.duration(to: simulation.now) < .seconds(1))
    }
  }
}

extension LongLinkClient {
  /// Expects that the server knows this client by a name.
  fileprivate func expectName(_ name: String) async throws {
    let reply = try await request(7, [0])
    #expect(String(decoding: reply, as: UTF8.self) == name)
  }
}
