// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Testing

/// Which requests and pushes a server takes from whom.
@Suite struct AccessRuleTests {
  /// A message of two bytes, so that one of one byte does not decode.
  private struct Pair: BodyEncodable & BodyDecodable, PushMessage {
    static var pushType: MessageType { 8 }
    var encodedByteCount: Int { 2 }

    init() {}

    func encode(into output: inout OutputRawSpan) {
      for _ in 0..<2 { output.append(7 as UInt8) }
    }

    init(decoding body: RawSpan) throws(BodyError) {
      guard body.byteCount == 2 else { throw BodyError(.malformed) }
    }
  }

  private static let ann = Principal("ann", attributes: ["role": "editor", "region": "north"])
  private static let editors = AccessRule.attribute("role", "editor")

  /// One route of each form: 10 to 13 with messages and streams of bytes, 20 to 24 typed.
  private static func route(
    on server: LongLinkServer, requires rule: AccessRule?, called: Tally<MessageType>
  ) {
    server.route(10, requires: rule) { request in
      called.add(request.type)
      return request.body
    }
    server.route(11, requires: rule) { request async in
      called.add(request.type)
      return request.body
    }
    let shapes: [(MessageType, StreamShape)] = [
      (12, .requestItems), (13, .responseItems), (14, [.requestItems, .responseItems]),
    ]
    for (type, shape) in shapes {
      server.routeStream(type, shape, requires: rule) { request, _, _ in
        called.add(request.type)
        return []
      }
    }
    server.route(RPCMethod<Pair, Pair>(20), requires: rule) { pair, request in
      called.add(request.type)
      return pair
    }
    server.route(RPCMethod<Pair, Pair>(21), requires: rule) { pair, request async in
      called.add(request.type)
      return pair
    }
    server.routeStream(RPCMethod<Streamed<Pair>, Pair>(22), requires: rule) { request, _ in
      called.add(request.type)
      return Pair()
    }
    server.routeStream(RPCMethod<Pair, Streamed<Pair>>(23), requires: rule) { _, request, _ in
      called.add(request.type)
    }
    server.routeStream(RPCMethod<Streamed<Pair>, Streamed<Pair>>(24), requires: rule) {
      request, _, _ in
      called.add(request.type)
    }
  }

  /// Makes a request of each form, with a body that no typed handler can decode if it is short.
  private static func call(
    _ type: MessageType, _ client: LongLinkClient, body: [UInt8]
  ) async throws {
    switch type {
    case 12, 22: _ = try await client.sendItems(type, body) { try await $0.write(body) }
    case 13, 23: for try await _ in client.stream(type, body) {}
    case 14, 24:
      _ = try await client.exchange(type, body) { items, writer in
        try await writer.write(body)
        writer.finish()
        for try await _ in items {}
      }
    default: _ = try await client.request(type, body)
    }
  }

  private static let types: [MessageType] = [10, 11, 12, 13, 14, 20, 21, 22, 23, 24]

  private static func identify(_ server: LongLinkServer, as principal: Principal?) {
    server.onConnect { $0.identified(as: principal?.record, security: nil) }
  }

  @Test(arguments: [nil, ann])
  func `a request that its rule does not allow is refused before its handler and its body`(
    _ principal: Principal?
  ) async throws {
    let called = Tally<MessageType>()
    try await Stage.serving { server in
      Self.identify(server, as: principal)
      Self.route(on: server, requires: .attribute("role", "admin"), called: called)
    } _: { _, server, client in
      for type in Self.types {
        let error = try await failure { try await Self.call(type, client, body: [1]) }
        #expect(error.response == .forbidden && error.delivery == .refused, "\(type): \(error)")
        #expect(error.body == Array("access to message type \(type) is denied".utf8))
      }
      let counters = await server.counters().connections
      #expect(counters.refusedAccess == UInt64(Self.types.count))
      #expect(counters.handled == 0 && counters.undecodable == 0)
      #expect(await server.counters().requestsRunning == 0)
    }
    #expect(called.elements == [])
  }

  @Test func `a request that its rule allows reaches its handler`() async throws {
    let called = Tally<MessageType>()
    try await Stage.serving { server in
      Self.identify(server, as: Self.ann)
      Self.route(on: server, requires: Self.editors, called: called)
    } _: { _, server, client in
      for type in Self.types { try await Self.call(type, client, body: [7, 7]) }
      #expect(await server.counters().connections.refusedAccess == 0)
    }
    #expect(called.elements == Self.types)
  }

  @Test func `rules look at the principal, and combine`() async throws {
    try await Stage.simulate { stage, _ in
      let ben = Principal("ben", attributes: ["role": "reader"])
      let peers = [nil, Self.ann, ben].map { principal in
        let peer = Peer(id: 1, address: nil, on: stage.serverLoop)
        peer.identified(as: principal?.record, security: nil)
        return peer
      }
      let rules: [(AccessRule, [Bool])] = [
        (.everyone, [true, true, true]),
        (.authenticated, [false, true, true]),
        (.principal(named: "ann"), [false, true, false]),
        (.principal(named: "Ann"), [false, false, false]),
        (Self.editors, [false, true, false]),
        (.attribute("role", "reader"), [false, false, true]),
        (.attribute("missing", ""), [false, false, false]),
        (.any([.principal(named: "ben"), Self.editors]), [false, true, true]),
        (.all([.authenticated, .attribute("region", "north")]), [false, true, false]),
        (.all([.any([Self.editors, .principal(named: "ben")]), .everyone]), [false, true, true]),
        (.custom { $0.principal?.name.hasPrefix("b") ?? true }, [true, false, true]),
        (.custom { $0.security != nil }, [false, false, false]),
      ]
      for (index, (rule, wanted)) in rules.enumerated() {
        #expect(peers.map { rule.condition.allows($0) } == wanted, "rule \(index)")
      }
    }
  }

  @Test func `a rule for all routes holds where there is no other`() async throws {
    let called = Tally<MessageType>()
    try await Stage.serving { server in
      server.route(1) { $0.body }
      server.require(.authenticated)
      server.route(2, requires: .everyone) { $0.body }
      Self.route(on: server, requires: nil, called: called)
      server.require(.everyone, for: 10)
      server.require(.custom { _ in false }, for: 2)
    } _: { _, _, client in
      #expect(try await client.request(10, [5]) == [5])
      for type: MessageType in [1, 2, 11, 12, 13, 14] {
        let error = try await failure { try await Self.call(type, client, body: [1]) }
        #expect(error.response == .forbidden && error.delivery == .refused, "\(type)")
      }
    }
    #expect(called.elements == [10])
  }

  @Test func `rules hold for short links as for connections`() async throws {
    let called = Tally<MessageType>()
    try await Stage.serving(in: .short) { server in
      server.routeBasics()
      Self.route(on: server, requires: .authenticated, called: called)
      server.require(.custom { $0.address != nil }, for: 11, 13)
    } _: { _, server, client in
      // A short link carries items in one direction.
      for type: MessageType in [10, 12] {
        let error = try await failure { try await Self.call(type, client, body: [1]) }
        #expect(error.response == .forbidden && error.delivery == .refused, "\(type): \(error)")
      }
      #expect(try await client.request(11, [5]) == [5])
      try await Self.call(13, client, body: [1])
      #expect(await server.counters().connections.refusedAccess == 2)
    }
    #expect(called.elements == [11, 13])
  }

  @Test(arguments: [nil, ann])
  func `a push that its rule does not allow is dropped and counted`(
    _ principal: Principal?
  ) async throws {
    let received = Tally<MessageType>()
    try await Stage.serving { server in
      server.routeBasics()
      Self.identify(server, as: principal)
      server.onPush(7, requires: .authenticated) { push, _ in received.add(push.type) }
      server.onPush(Pair.self, requires: .authenticated) { _, _ in received.add(8) }
      server.onPush(9) { push, _ in received.add(push.type) }
    } _: { stage, server, client in
      try await client.connect()
      try await client.push(7, [1])
      try await client.push(Pair())
      try await client.push(9, [1])
      try await stage.until { await server.counters().connections.pushesReceived == 3 }
      let counters = await server.counters()
      #expect(counters.pushesDenied == (principal == nil ? 2 : 0))
      #expect(counters.pushesUnhandled == 0)
    }
    #expect(received.elements == (principal == nil ? [9] : [7, 8, 9]))
  }

  @Test func `a peer that insists on a route without access is few lines, and runs nothing`()
    async throws
  {
    let lines = LogLines()
    let called = Tally<MessageType>()
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(
        setUp: { server in
          Self.identify(server, as: Principal("mallory\ncritical: forged"))
          Self.route(on: server, requires: Self.editors, called: called)
        }, configure: { $0.logger = lines.logger })
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      _ = try await client.sayHello()
      for number: UInt32 in 0..<1_000 { client.send(.request(10, serial: 50 + number)) }
      try await stage.until { await server.counters().connections.refusedAccess == 1_000 }
      let told = lines.all("Refused a request")
      #expect(told.count == 3)
      for line in told {
        #expect(line.level == .info && line.metadata["type"] == "10")
        #expect(line.metadata["code"] == "403")
        #expect(line.metadata["detail"] == "the access rule of its route does not allow the peer")
        #expect(line.metadata["principal"] == #"mallory\ncritical: forged"#)
      }
      #expect(await server.counters().connections.handled == 0)
      #expect(await server.counters().requestsRunning == 0)
    }
    #expect(called.elements == [])
  }

  @Test func `a rule for a route that is not there traps`() async {
    await #expect(processExitsWith: .failure) {
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 9_000))
      server.require(.authenticated, for: 1)
    }
  }
}
