// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Moving to a new connection before a credential expires, and what goes wrong with that.
@Suite struct RenewalTests {
  /// What the application and the servers of a test say.
  private final class Login: Sendable {
    private let state = Mutex((isDown: false, isRefused: false))
    let calls = Tally<Int>()

    var isDown: Bool {
      get { state.withLock { $0.isDown } }
      set { state.withLock { $0.isDown = newValue } }
    }
    var isRefused: Bool {
      get { state.withLock { $0.isRefused } }
      set { state.withLock { $0.isRefused = newValue } }
    }

    func credential() throws -> [UInt8] {
      calls.add(calls.count)
      if isDown { throw Down() }
      return [1, 2, 3]
    }

    func judge(validity: Duration?) throws -> Authentication {
      if isRefused { throw AuthenticationRefusal.unauthenticated("an old token") }
      return Authentication(Principal("ann"), validity: validity)
    }
  }

  private struct Down: Error {}

  /// Runs a body with so many servers, of which the first is preferred, and a client of them.
  private static func run(
    servers: Int = 1, seed: UInt64 = 1, validity: Duration? = nil,
    configure: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    _ body:
      @escaping @Sendable (Stage, [LongLinkServer], LongLinkClient, Login) async throws -> Void
  ) async throws {
    try await Stage.simulate(seed: seed) { stage, _ in
      let login = Login()
      var started: [LongLinkServer] = []
      for _ in 0..<servers {
        started.append(
          try await stage.serve(configure: {
            $0.authenticate = { _ in try login.judge(validity: validity) }
            $0.maxConnectionRatePerAddress = 1_000_000
          }))
      }
      let client = try stage.client(to: started.flatMap(\.endpoints)) {
        $0.credential = { try login.credential() }
        $0.sendsCredentialUnencrypted = true
        configure(&$0)
      }
      try await body(stage, started, client, login)
    }
  }

  // MARK: What goes wrong

  @Test func `a refused renewal leaves the connection alone that works`() async throws {
    try await Self.run(servers: 2, validity: .seconds(100)) { stage, servers, client, login in
      try await client.connect()
      let home = client.state
      login.isRefused = true
      for _ in 0..<96 {
        try await stage.clientLoop.sleep(for: .seconds(1))
        try await client.expectEcho([1])
        #expect(
          client.state == home
            || client.state == .migrating(servers[0].addresses[0], to: servers[0].endpoints[0]))
      }
      // Several times, in ever shorter intervals, and at the server that it is connected to.
      #expect((4...14).contains(login.calls.count), "\(login.calls.count)")
      #expect(await servers[1].counters().authentications.refused == 0)
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.coolDowns == 0)
      login.isRefused = false
      try await stage.until { await client.counters().connects == 2 }
      #expect(client.state == home)
      #expect(await servers[1].counters().authentications.accepted == 0)
    }
  }

  @Test func `a client whose renewals were refused stops when its connection has ended`()
    async throws
  {
    try await Self.run(validity: .seconds(100)) { stage, servers, client, login in
      try await client.connect()
      login.isRefused = true
      try await stage.until { client.state == .notAccepted(.unauthenticated) }
      let calls = login.calls.count
      #expect(calls <= 30, "\(calls)")
      try await stage.clientLoop.sleep(for: .seconds(1_000))
      #expect(login.calls.count == calls)
    }
  }

  @Test func `a credential that the application cannot give is the fault of no server`()
    async throws
  {
    try await Self.run(servers: 3) { stage, servers, client, login in
      login.isDown = true
      for _ in 0..<5 {
        let error = try await failure { try await client.connect() }
        #expect(error.code == .connectFailed && error.detail.contains("Down"), "\(error)")
      }
      #expect(await client.counters().coolDowns == 0)
      login.isDown = false
      try await client.connect()
      #expect(client.state == .connected(servers[0].addresses[0]))
    }
  }

  @Test func `nor is one that the application takes too long to give`() async throws {
    let goOn = Latch()
    try await Stage.simulate { stage, _ in
      let servers = [try await stage.serve(), try await stage.serve()]
      let client = try stage.client(to: servers.flatMap(\.endpoints)) {
        $0.sendsCredentialUnencrypted = true
        $0.credential = {
          await goOn.wait()
          return [1]
        }
      }
      for _ in 0..<3 {
        let error = try await failure { try await client.connect() }
        #expect(error.detail.contains("did not return in time"), "\(error)")
      }
      #expect(await client.counters().coolDowns == 0)
      goOn.open()
      try await client.connect()
      #expect(client.state == .connected(servers[0].addresses[0]))
    }
  }

  @Test func `a renewal for which there is no credential stays at its server`() async throws {
    try await Self.run(servers: 2, validity: .seconds(100)) { stage, servers, client, login in
      try await client.connect()
      login.isDown = true
      try await stage.clientLoop.sleep(for: .seconds(96))
      #expect(login.calls.count > 3)
      login.isDown = false
      try await stage.until { await client.counters().connects == 2 }
      #expect(await client.counters().coolDowns == 0)
      #expect(client.state == .connected(servers[0].addresses[0]))
    }
  }
}
