// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// The functions of an application are set before its server is started.
@Suite struct ServerHookTests {
  enum Hook: String, CaseIterable, Codable, Sendable {
    case route, onAccept, onConnect, onDisconnect, onPush, require, intercept

    func set(on server: LongLinkServer) {
      switch self {
      case .route: server.route(1) { request in request.body }
      case .onAccept: server.onAccept { _ in true }
      case .onConnect: server.onConnect { _ in }
      case .onDisconnect: server.onDisconnect { _ in }
      case .onPush: server.onPush(7) { _, _ in }
      case .require: server.require(.authenticated)
      case .intercept: server.intercept { request, next in try await next(request) }
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
