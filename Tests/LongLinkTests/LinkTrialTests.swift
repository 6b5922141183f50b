// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What happens to a long link while it stands its trial, because an earlier one was cut.
@Suite struct LinkTrialTests {
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
  /// stands a trial.
  private static func cut(
    _ cuts: Int = 1,
    server change: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    client configure: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    setUp: @Sendable @escaping (LongLinkClient) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.pair(in: .bothWays) {
      $0.identity.sendsCredentialUnencrypted = true
      configure(&$0)
    } server: {
      change(&$0)
    } _: { stage, server, client in
      setUp(client)
      for _ in 0..<cuts { try await stage.cut(server, client) }
      // It waits without requests for the next one.
      try await client.expectEcho([0])
      try await inTrial(stage, server, client)
      try await body(stage, server, client)
    }
  }

  /// Waits until the next long link stands its trial, beside the short ones.
  private static func inTrial(
    _ stage: Stage, _ server: LongLinkServer, _ client: LongLinkClient
  ) async throws {
    try await stage.trial(of: server)
    #expect(client.state == .short(Way.gatewayName))
  }

  // MARK: Credentials

  @Test(arguments: [1, 2, 3, 4], [false, true])
  func `a link whose credential does not last for its trial takes requests before`(
    cuts: Int, isNewEachTime: Bool
  ) async throws {
    let login = Login(isNewEachTime: isNewEachTime)
    try await Self.cut(cuts) {
      $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(5)) }
    } client: {
      $0.identity.credential = { login.credential() }
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
      $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: nil) }
    } client: {
      $0.identity.credential = { login.credential() }
    } _: { stage, server, client in
      for count: UInt64 in 1...5 {
        try await Self.inTrial(stage, server, client)
        #expect(await server.endConnections(of: "ann") == 1)
        try await stage.until { await client.counters().trialsFailed == count }
        try await client.expectEcho([1])
        #expect(client.state == .short(Way.gatewayName))
      }
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([2])
    }
  }

  /// Two refusals of the same credential in a row would stop the client.
  @Test(arguments: [false, true])
  func `a trial shows that the server accepts the credential, however it ends`(
    isLost: Bool
  ) async throws {
    let login = Login(isNewEachTime: false)
    try await Self.cut {
      $0.identity.authenticate = { _ in
        if login.isRefused { throw Rejection(.unauthenticated, "an old token") }
        return Authentication(Principal("ann"), validity: nil)
      }
    } client: {
      $0.identity.credential = { login.credential() }
    } _: { stage, server, client in
      for refusals: UInt64 in 1...4 {
        login.isRefused = true
        if isLost {
          stage.simulation?.network.loseAllLinks()
        } else {
          await server.endConnections(of: "ann")
        }
        try await stage.until { await server.counters().authentications.refused == refusals }
        login.isRefused = false
        try await Self.inTrial(stage, server, client)
      }
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([1])
    }
  }

  @Test func `a trial ends before the credential expires`() async throws {
    try await Stage.pair(in: .bothWays) {
      $0.identity.credential = { [1] }
      $0.identity.sendsCredentialUnencrypted = true
      $0.timeouts.connect = .seconds(10)
    } server: {
      $0.identity.authenticate = { _ in Authentication(Principal("eve"), validity: .seconds(8)) }
    } _: { stage, server, client in
      try await stage.cut(server, client)
      try await stage.expectTrial(of: 6, server, client)
      for _ in 0..<30 {
        try await client.expectEcho([1])
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      let counters = await client.counters()
      #expect(counters.trialsPassed == 1 && counters.trialsFailed == 0)
      #expect(await client.shortRequests() == 0)
    }
  }

  /// Runs a body with a client whose credential is accepted over long links alone.
  private static func longLinksAlone(
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.pair(in: .bothWays) {
      $0.identity.credential = { Array("key-eve".utf8) }
      $0.identity.sendsCredentialUnencrypted = true
      $0.timeouts.connect = .seconds(30)
    } server: {
      $0.identity.authenticate = { request in
        if request.isShortLink { throw AuthenticationTests.refusal("no short links") }
        return try AuthenticationTests.byKey(request)
      }
    } _: { stage, server, client in
      try await body(stage, server, client)
    }
  }

  @Test func `short links that are not accepted end the trial`() async throws {
    try await Self.longLinksAlone { stage, server, client in
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      for _ in 0..<2 {
        let error = try await failure { try await client.request(.echo, [1]) }
        #expect(error.code == .notAccepted)
      }
      #expect(!client.state.isConnected)
      try await client.expectEcho([2])
      #expect(client.state.isConnected)
    }
  }

  @Test func `where short links were not accepted, a link stands no trial`() async throws {
    try await Self.longLinksAlone { stage, server, client in
      try await stage.cut(server, client)
      let address = server.addresses[0]
      stage.simulation?.network.setConnects(.refused, to: address)
      for _ in 0..<2 { _ = try await failure { try await client.request(.echo, [1]) } }
      stage.simulation?.network.setConnects(nil, to: address)
      try await stage.trial(of: server)
      try await client.expectEcho([2])
      #expect(await client.counters().trialsPassed == 0)
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
        #expect(client.state == .short(Way.gatewayName))
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
      #expect(peer.client?.open.contains { $0 === peer } == true)
      if isCancelled { asked.cancel() }
      goOn.open()
      if isCancelled {
        #expect(try await failure { try await asked.value }.code == .cancelled)
      } else {
        #expect(try await asked.value == [7])
      }
      try await drained.value
      #expect(await !server.peers().contains { $0.connectionID == peer.connectionID })
      #expect(await client.counters().linksExpired == 0)
      try await stage.until { client.state.isConnected }
    }
  }

  @Test func `a server that shuts down during a trial is left for another one`() async throws {
    try await Stage.simulate { stage, _ in
      let first = try await stage.serve()
      let second = try await stage.serve(at: .host("10.0.0.2", port: 80))
      _ = try await stage.gateway(for: second)
      let client = try stage.client(of: first, second) {
        $0.ways = [.longLink, .short]
        $0.timeouts.connect = .seconds(3)
      }
      try await stage.cut(first, client)
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
