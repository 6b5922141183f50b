// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// The functions of an application are set before its server is started.
@Suite struct ServerHookTests {
  enum Hook: String, CaseIterable, Codable, Sendable {
    case inline, task, typedInline, typedTask, stream, serverStream, clientStream, bothStreams
    case onAccept, onConnect, onDisconnect, onConnectionOpened, onConnectionEnded, onPush,
      typedPush, require, intercept

    /// Sets it, as if in a line of this file.
    func set(on server: LongLinkServer, line: UInt = #line) {
      typealias Bytes = [UInt8]
      switch self {
      case .inline: server.route(1, line: line) { request in request.body }
      case .task: server.route(1, on: .connectionLoop, line: line) { request in request.body }
      case .typedInline:
        server.route(RPCMethod<Bytes, Bytes>(1, "Say", of: "talk.Talk"), line: line) { body, _ in
          body
        }
      case .typedTask:
        server.route(
          RPCMethod<Bytes, Bytes>(1, "Say", of: "talk.Talk"), on: .connectionLoop, line: line
        ) { body, _ in body }
      case .stream: server.routeStream(1, .requestItems, line: line) { _, _, _ in Bytes() }
      case .serverStream:
        server.routeStream(
          RPCMethod<Bytes, Streamed<Bytes>>(1, "Say", of: "talk.Talk"), line: line
        ) { _, _, _ in }
      case .clientStream:
        server.routeStream(
          RPCMethod<Streamed<Bytes>, Bytes>(1, "Say", of: "talk.Talk"), line: line
        ) { _, _ in [] }
      case .bothStreams:
        server.routeStream(
          RPCMethod<Streamed<Bytes>, Streamed<Bytes>>(1, "Say", of: "talk.Talk"), line: line
        ) { _, _, _ in }
      case .onAccept: server.onAccept(line: line) { _ in true }
      case .onConnect: server.onConnect(line: line) { _ in }
      case .onDisconnect: server.onDisconnect(line: line) { _ in }
      case .onConnectionOpened: server.onConnectionOpened(line: line) { _ in }
      case .onConnectionEnded: server.onConnectionEnded(line: line) { _ in }
      case .onPush: server.onPush(7, line: line) { _, _ in }
      case .typedPush: server.onPush(Note.self, line: line) { _, _ in }
      case .require: server.require(.authenticated, line: line)
      case .intercept: server.intercept { request, next in try await next(request) }
      }
    }

    /// What can be set once, as an error calls it, with the name of its method; nil for the others.
    var setting: (text: String, origin: String)? {
      switch self {
      case .inline, .task, .stream: ("the route of message type 1", "at ")
      case .typedInline, .typedTask, .serverStream, .clientStream, .bothStreams:
        ("the route of message type 1", "for talk.Talk/Say at ")
      case .onAccept, .onConnect, .onDisconnect, .onConnectionOpened, .onConnectionEnded:
        (rawValue, "at ")
      case .onPush: ("onPush of message type 7", "at ")
      case .typedPush: ("onPush of message type 40", "at ")
      case .require: ("the access rule of all routes", "at ")
      case .intercept: nil
      }
    }
  }

  /// Sets a function on both sides of a start, if asked; only the later one can trap.
  private static func start(settingBefore early: Hook, after late: Hook?) async {
    let simulation = Simulation(seed: 1)
    try? await simulation.run {
      let server = try LongLinkServer(
        listen: .host("127.0.0.1", port: 9_000), on: [simulation.mainLoop])
      early.set(on: server)
      try await server.start()
      late?.set(on: server)
      await server.shutDown()
    }
  }

  @Test(arguments: Hook.allCases)
  func `a function that is set after the start traps`(hook: Hook) async {
    await #expect(processExitsWith: .failure) { [hook] in
      await Self.start(settingBefore: hook, after: hook)
    }
    await #expect(processExitsWith: .success) { [hook] in
      await Self.start(settingBefore: hook, after: nil)
    }
  }

  @Test(arguments: Hook.allCases.filter { $0.setting != nil })
  func `what can be set once traps the second time, and names both places`(hook: Hook) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [hook] in
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 9_000))
      hook.set(on: server, line: 1_001)
      hook.set(on: server, line: 1_002)
    }
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    guard let (text, origin) = hook.setting else { return }
    let place = "\(origin)\(#fileID)"
    #expect(said.contains("\(text) is set twice: first \(place):1001, then \(place):1002"))
  }

  @Test func `a route of another form, or without its rule, does not replace the first`() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 9_000))
      server.route(1, requires: .authenticated) { request in request.body }
      server.routeStream(1, .requestItems) { _, _, _ in EmptyBody() }
    }
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.contains("is set twice"))
  }

  @Test func `functions that were set before a start that fails are used by the next start`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let accepted = Tally<SocketAddress?>()
      let connected = Tally<UInt64>()
      let ended = Tally<UInt64>()
      let pushes = Tally<Push>()
      let other = try await stage.serve()
      let server = try LongLinkServer(listen: other.endpoint, on: [stage.serverLoop])
      server.onAccept { address in
        accepted.add(address)
        return true
      }
      server.onConnect { connected.add($0.id) }
      server.onDisconnect { ended.add($0.id) }
      server.onPush(7) { push, _ in pushes.add(push) }
      #expect(try await failure { try await server.start() }.code == .connectFailed)
      await other.shutDown()
      try await server.start()
      let client = try stage.client(of: server)
      try await client.connect()
      try await client.push(7, [1])
      await pushes.reached(1)
      await client.close()
      await ended.reached(1)
      #expect(accepted.count == 1 && connected.elements == ended.elements)
      #expect(pushes.elements == [Push(type: 7, body: [1])])
      await server.shutDown()
    }
  }

  @Test func `pushes without a handler are counted over all loops`() async throws {
    try await Stage.simulate { stage, simulation in
      let loops = (0..<2).map { simulation.eventLoop(named: "lane \($0)") }
      let server = try await stage.serve(on: loops) { $0.onPush(7) { _, _ in } }
      for _ in 0..<4 {
        let client = try stage.client(of: server)
        try await client.connect()
        try await client.push(7, [1])
        try await client.push(8, [1])
      }
      try await stage.until { await server.counters().pushesUnhandled == 4 }
      await server.shutDown()
      #expect(await server.counters().pushesUnhandled == 4)
    }
  }
}
