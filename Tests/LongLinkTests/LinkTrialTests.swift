// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What happens to a long link while it stands its trial, because an earlier one was cut.
@Suite struct LinkTrialTests {
  private static let gatewayAddress = ShortLinkTests.gatewayAddress
  private static let way = "short://10.0.0.1:8080"

  /// What the application and the server say.
  private final class Login: Sendable {
    private let state = Mutex((credential: [UInt8(1)], isRefused: false))
    /// Whether each is another one.
    let isNewEachTime: Bool

    var isRefused: Bool {
      get { state.withLock { $0.isRefused } }
      set { state.withLock { $0.isRefused = newValue } }
    }

    init(isNewEachTime: Bool) {
      self.isNewEachTime = isNewEachTime
    }

    func credential() -> [UInt8] {
      state.withLock { state in
        if isNewEachTime { state.credential[0] &+= 1 }
        return state.credential
      }
    }
  }

  /// Runs a body when the network has cut so many long links of a client, so that the next one
  /// stands a trial: of 3 seconds after the first one, of twice as long after each further one.
  private static func cut(
    _ cuts: Int = 1,
    server change: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    client configure: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    setUp: @Sendable @escaping (LongLinkClient) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(setUp: ShortLinkTests.routes, configure: change)
      _ = try await stage.gateway(for: server)
      let client = try stage.client(of: server) {
        $0.ways = [.longLink, .simulatedShort(to: gatewayAddress)]
        $0.connectTimeout = .seconds(3)
        $0.sendsCredentialUnencrypted = true
        configure(&$0)
      }
      setUp(client)
      try await client.connect()
      for _ in 0..<cuts {
        try await stage.until { client.state.isConnected }
        let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(100)))
        try await stage.until { await server.counters().requestsRunning == 1 }
        for link in simulation.network.links(to: server.addresses[0]) { link.lose() }
        let error = try await failure { try await hanging.value }
        #expect(error.delivery == .sent)
      }
      // It waits without requests for the next one.
      try await client.expectEcho([0])
      try await inTrial(stage, server, client)
      try await body(stage, server, client)
    }
  }

  /// Waits until the next long link stands its trial.
  private static func inTrial(
    _ stage: Stage, _ server: LongLinkServer, _ client: LongLinkClient
  ) async throws {
    // Short links have ended, too.
    try await stage.clientLoop.sleep(for: .milliseconds(100))
    try await stage.until { await server.counters().openConnections == 1 }
    try await stage.clientLoop.sleep(for: .milliseconds(100))
    #expect(await server.counters().openConnections == 1)
    #expect(client.state == .short(way))
  }

  // MARK: Credentials

  @Test(arguments: [1, 2, 3, 4], [false, true])
  func `a link whose credential does not last for its trial takes requests before`(
    cuts: Int, isNewEachTime: Bool
  ) async throws {
    let login = Login(isNewEachTime: isNewEachTime)
    try await Self.cut(cuts) {
      $0.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(5)) }
    } client: {
      $0.credential = { login.credential() }
    } _: { stage, _, client in
      let ends = Tally<String>()
      client.observeLinks { _, event in
        switch event {
        case .failed: ends.add("an attempt")
        case .ended(_, let reason, _) where reason != .closedHere: ends.add("\(reason)")
        default: break
        }
      }
      let start = stage.clientLoop.clock.now
      try await stage.until { client.state.isConnected }
      #expect(start.duration(to: stage.clientLoop.clock.now) <= .seconds(5))
      // From here on, its renewal goes as with every other link.
      for _ in 0..<100 {
        try await stage.clientLoop.sleep(for: .seconds(1))
        try await client.expectEcho([1])
        #expect(client.state.isConnected)
      }
      #expect(ends.elements == [])
    }
  }

  @Test(arguments: [false, true])
  func `a credential that ends early during a trial counts as accepted`(
    isNewEachTime: Bool
  ) async throws {
    let login = Login(isNewEachTime: isNewEachTime)
    try await Self.cut {
      $0.authenticate = { _ in Authentication(Principal("ann"), validity: nil) }
    } client: {
      $0.credential = { login.credential() }
    } _: { stage, server, client in
      for _ in 0..<5 {
        try await Self.inTrial(stage, server, client)
        #expect(await server.endConnections(of: "ann") == 1)
        try await stage.until { await server.counters().openConnections == 0 }
        try await client.expectEcho([1])
        #expect(client.state == .short(Self.way))
      }
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([2])
    }
  }

  @Test func `a trial shows that the server accepts the credential`() async throws {
    let login = Login(isNewEachTime: false)
    try await Self.cut {
      $0.authenticate = { _ in
        if login.isRefused { throw AuthenticationRefusal.unauthenticated("an old token") }
        return Authentication(Principal("ann"), validity: nil)
      }
    } client: {
      $0.credential = { login.credential() }
    } _: { stage, server, client in
      for refusals: UInt64 in 1...4 {
        login.isRefused = true
        await server.endConnections(of: "ann")
        try await stage.until { await server.counters().authentications.refused == refusals }
        login.isRefused = false
        try await Self.inTrial(stage, server, client)
      }
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([1])
    }
  }

  // MARK: Drains

  /// A connection of the server in its trial.
  private static func peer(_ server: LongLinkServer) async throws -> Peer {
    try #require(await server.peers().first)
  }

  @Test func `a link that is drained during its trial takes no requests, and the next one does`()
    async throws
  {
    try await Self.cut { stage, server, client in
      let peer = try await Self.peer(server)
      let start = stage.clientLoop.clock.now
      await server.drain(peer, within: .seconds(1_000), retryAfter: .seconds(60))
      #expect(start.duration(to: stage.clientLoop.clock.now) < .seconds(1))
      #expect(await server.counters().openConnections == 0)
      for _ in 0..<50 {
        try await client.expectEcho([1])
        #expect(client.state == .short(Self.way))
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      // The server's hint holds.
      #expect(await server.counters().openConnections == 0)
      try await stage.until { client.state.isConnected }
      #expect(start.duration(to: stage.clientLoop.clock.now) > .seconds(60))
      try await client.expectEcho([2])
    }
  }

  @Test(arguments: [false, true])
  func `a link that is drained during its trial ends what the server has asked`(
    isCancelled: Bool
  ) async throws {
    let (began, goOn) = (Tally<Void>(), Latch())
    try await Self.cut(setUp: { client in
      client.onRequest(.echo) { request in
        began.add(())
        await goOn.wait()
        return request.body
      }
    }) { stage, server, client in
      let peer = try await Self.peer(server)
      let patient = RequestOptions(timeout: .seconds(3_600))
      let asked = stage.spawn { try await peer.request(.echo, [7], options: patient) }
      await began.reached(1)
      let drained = stage.spawn { await server.drain(peer, within: .seconds(1_000)) }
      try await stage.clientLoop.sleep(for: .seconds(5))
      try await client.expectEcho([1])
      #expect(await server.peers().contains { $0.id == peer.id })
      if isCancelled { asked.cancel() }
      goOn.open()
      if isCancelled {
        #expect(try await failure { try await asked.value }.code == .cancelled)
      } else {
        #expect(try await asked.value == [7])
      }
      try await drained.value
      #expect(await !server.peers().contains { $0.id == peer.id })
      #expect(await client.counters().linksExpired == 0)
      try await stage.until { client.state.isConnected }
    }
  }

  @Test func `a server that shuts down during a trial is left for another one`() async throws {
    try await Stage.simulate { stage, simulation in
      let first = try await stage.serve(setUp: ShortLinkTests.routes)
      let second = try await stage.serve(
        at: .host("10.0.0.2", port: 80), setUp: ShortLinkTests.routes)
      _ = try await stage.gateway(for: second)
      let client = try stage.client(of: first, second) {
        $0.ways = [.longLink, .simulatedShort(to: Self.gatewayAddress)]
        $0.connectTimeout = .seconds(3)
      }
      try await client.connect()
      let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(100)))
      try await stage.until { await first.counters().requestsRunning == 1 }
      for link in simulation.network.links(to: first.addresses[0]) { link.lose() }
      _ = try await failure { try await hanging.value }
      try await stage.until {
        let (one, two) = await (first.counters(), second.counters())
        return one.openConnections + two.openConnections == 1 && !client.state.isConnected
      }
      let inTrial = await first.counters().openConnections == 1 ? first : second
      await inTrial.shutDown(within: .seconds(1))
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([1])
    }
  }

  // MARK: Closing

  @Test(arguments: [Duration?.none, .zero, .seconds(10)], [false, true])
  func `a client can be closed during a trial`(bound: Duration?, isAsked: Bool) async throws {
    let began = Tally<Void>()
    try await Self.cut(setUp: { client in
      client.onRequest(.hang) { request in
        began.add(())
        try await request.clock.sleep(for: .seconds(1_000))
        return []
      }
    }) { stage, server, client in
      let peer = try await Self.peer(server)
      let waiting = stage.spawn { try await client.request(.hang, []) }
      let asked = isAsked ? stage.spawn { try await peer.request(.hang, []) } : nil
      if isAsked { await began.reached(1) }
      try await stage.until { await server.counters().requestsRunning == 1 }
      let start = stage.clientLoop.clock.now
      if let bound { await client.close(within: bound) } else { await client.close() }
      // A request over the short link is all that is waited for.
      #expect(start.duration(to: stage.clientLoop.clock.now) <= .seconds(11))
      #expect(client.state == .closed)
      let error = try await failure { try await waiting.value }
      #expect(error.delivery == .sent, "\(error)")
      if let asked {
        let error = try await failure { try await asked.value }
        #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
      }
      try await stage.until { await server.counters().openConnections == 0 }
    }
  }

  @Test func `a client can be suspended and resumed during a trial`() async throws {
    try await Self.cut { stage, server, client in
      await client.suspend(within: .zero)
      try await stage.until { await server.counters().openConnections == 0 }
      try await stage.clientLoop.sleep(for: .seconds(100))
      #expect(!client.state.isConnected)
      client.resume()
      // Nothing is known to be open now, so that there is no other way to go meanwhile.
      try await client.expectEcho([1])
      #expect(client.state.isConnected)
    }
  }
}
