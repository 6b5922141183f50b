// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Moving to a new connection before the server's time for a client ends, and what goes wrong with
/// that. A client whose credential is empty has nothing to renew on its connection.
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
      return []
    }

    func judge(validity: Duration?) throws -> Authentication {
      if isRefused { throw Rejection(.unauthenticated, "an old token") }
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
            $0.identity.authenticate = { _ in try login.judge(validity: validity) }
            $0.addresses.maxConnectionRate = 1_000_000
          }))
      }
      let client = try stage.client(to: started.flatMap(\.endpoints)) {
        $0.identity.credential = { try login.credential() }
        $0.identity.sendsCredentialUnencrypted = true
        configure(&$0)
      }
      try await body(stage, started, client, login)
    }
  }

  // MARK: How often

  @Test(arguments: [20, 50, 300, 900, 1_100], [false, true])
  func `credentials that hardly last make no storm of connections`(
    _ milliseconds: Int, isBusy: Bool
  ) async throws {
    try await Self.run(validity: .milliseconds(milliseconds)) { stage, _, client, login in
      try? await client.connect()
      let begin = stage.clientLoop.clock.now
      while begin.duration(to: stage.clientLoop.clock.now) < .seconds(60) {
        if isBusy { _ = try? await client.request(.echo, [1]) }
        try await stage.clientLoop.sleep(for: .milliseconds(10))
      }
      let connects = Int(await client.counters().connects)
      // Renewals are a second apart; what cannot be renewed is followed by delays that grow.
      let most = milliseconds > 1_000 ? 61 : 20
      #expect((2...most).contains(connects), "\(connects)")
      #expect(login.calls.count <= connects + 1, "\(login.calls.count)")
    }
  }

  @Test func `a connection is renewed at 75 to 90 percent of the validity, at random`()
    async throws
  {
    let ages = Tally<Double>()
    for seed: UInt64 in 1...10 {
      try await Self.run(seed: seed, validity: .seconds(100)) { stage, _, client, _ in
        let begins = Tally<LinkInstant>()
        client.observeLinks { time, event in
          if case .established = event { begins.add(time) }
        }
        try await client.connect()
        try await stage.clientLoop.sleep(for: .seconds(1_000))
        let times = begins.elements
        for (former, next) in zip(times, times.dropFirst()) {
          ages.add(Double(next - former) / 1_000_000_000)
        }
      }
    }
    // The rest of a second is for the connect itself.
    #expect(ages.elements.allSatisfy { (75...91).contains($0) }, "\(ages.elements)")
    #expect(ages.elements.min()! < 77 && ages.elements.max()! > 88, "\(ages.elements)")
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

  @Test func `a credential that expires during the renewal costs a pause and no request`()
    async throws
  {
    let calls = Tally<Int>()
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(10)) }
      })
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = { [loop = stage.clientLoop] in
          calls.add(0)
          // The second one comes too late.
          if calls.count == 2 { try await loop.sleep(for: .seconds(5)) }
          return []
        }
      }
      for second in 0..<60 {
        try await client.expectEcho([UInt8(second)])
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      #expect(await server.counters().authentications.expired == 1)
      let counters = await client.counters()
      #expect(counters.requests.lost == 0 && counters.requests.succeeded == 60)
      #expect(counters.connects <= 9 && calls.count == Int(counters.connects))
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
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
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

  @Test func `renewals do not keep a client from its preferred server`() async throws {
    try await Self.run(servers: 2, validity: .seconds(40)) {
      $0.reconnect.preferredRetry = .seconds(60)
    } _: { stage, servers, client, _ in
      stage.simulation?.network.setConnects(.refused, to: servers[0].addresses[0])
      try? await client.connect()
      try await stage.until { client.state == .connected(servers[1].addresses[0]) }
      stage.simulation?.network.setConnects(nil, to: servers[0].addresses[0])
      try await stage.clientLoop.sleep(for: .seconds(80))
      #expect(client.state == .connected(servers[0].addresses[0]))
    }
  }

  @Test func `other servers get their own two chances to refuse a credential`() async throws {
    try await Self.run(servers: 1) { stage, servers, client, login in
      login.isRefused = true
      _ = try? await client.connect()
      try await stage.until { client.state == .notAccepted(.unauthenticated) }
      let other = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in try login.judge(validity: nil) }
      })
      try client.switchServers(to: other.endpoints.map { ServerEntry($0) })
      try await stage.until { client.state == .notAccepted(.unauthenticated) }
      #expect(await other.counters().authentications.refused == 2)
    }
  }

  @Test func `a stream that outlives its credential is lost, and not answered with 401`()
    async throws
  {
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { request, _, writer in
        while true {
          try await writer.write([1])
          try await request.clock.sleep(for: .seconds(1))
        }
      }
    } client: {
      $0.identity.credential = { [] }
      $0.identity.sendsCredentialUnencrypted = true
    } server: {
      $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(60)) }
    } _: { _, _, client in
      let error = try await failure { for try await _ in client.stream(10, []) {} }
      #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
      #expect(error.closeReason == .goneAway(.unauthenticated), "\(error)")
      // By then, the client has long moved.
      #expect(await client.counters().connects > 1)
    }
  }
}
