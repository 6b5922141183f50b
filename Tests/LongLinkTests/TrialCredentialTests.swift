// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Trials of long links, and credentials that expire or are refused meanwhile.
@Suite struct TrialCredentialTests {
  /// Runs a body with a server that has both ways and judges the client's credential.
  private static func authenticated(
    connectTimeout: Duration,
    _ judge: @escaping @Sendable (AuthenticationRequest) throws -> Authentication,
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await TrialTests.both(connectTimeout: connectTimeout) {
      $0.credential = { Array("key-eve".utf8) }
      $0.sendsCredentialUnencrypted = true
    } server: {
      $0.authenticate = { try judge($0) }
    } _: { stage, server, client in
      try await body(stage, server, client)
    }
  }

  @Test func `a trial ends before the credential expires`() async throws {
    try await Self.authenticated(connectTimeout: .seconds(10)) { _ in
      Authentication(Principal("eve"), validity: .seconds(8))
    } _: { stage, server, client in
      try await TrialTests.cut(stage, server, client)
      try await TrialTests.expectTrial(of: 6, stage, server, client)
      for _ in 0..<30 {
        try await client.expectEcho([1])
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      let counters = await client.counters()
      #expect(counters.trialsPassed == 1 && counters.trialsFailed == 0)
      #expect(await TrialTests.shortRequests(client) == 0)
    }
  }

  @Test func `a server that ends links in their trial has not refused the credential`()
    async throws
  {
    try await Self.authenticated(connectTimeout: .seconds(10)) {
      try AuthenticationTests.byKey($0)
    } _: { stage, server, client in
      try await TrialTests.cut(stage, server, client)
      for count in 1...3 as ClosedRange<UInt64> {
        try await TrialTests.held(stage, server)
        #expect(await server.endConnections(of: "eve") == 1)
        try await stage.until { await client.counters().trialsFailed == count }
      }
      try await stage.until { client.state.isConnected }
      try await client.expectEcho([1])
    }
  }

  @Test func `a trial shows that the credential was accepted`() async throws {
    let asked = Tally<Int>()
    try await Self.authenticated(connectTimeout: .seconds(10)) { request in
      asked.add(asked.count)
      // Two refusals of the same credential in a row would stop the client.
      if [2, 4].contains(asked.count) { throw AuthenticationTests.refusal("not now") }
      return try AuthenticationTests.byKey(request)
    } _: { stage, server, client in
      try await TrialTests.cut(stage, server, client)
      try await stage.until { asked.count == 3 }
      try await TrialTests.held(stage, server)
      stage.simulation?.network.loseAllLinks()
      try await stage.until { asked.count == 5 }
      try await stage.until { client.state.isConnected }
    }
  }

  @Test func `short links that are not accepted end the trial`() async throws {
    try await Self.authenticated(connectTimeout: .seconds(30)) { request in
      if request.isShortLink { throw AuthenticationTests.refusal("no short links") }
      return try AuthenticationTests.byKey(request)
    } _: { stage, server, client in
      try await TrialTests.cut(stage, server, client)
      try await TrialTests.held(stage, server)
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
    try await Self.authenticated(connectTimeout: .seconds(30)) { request in
      if request.isShortLink { throw AuthenticationTests.refusal("no short links") }
      return try AuthenticationTests.byKey(request)
    } _: { stage, server, client in
      try await TrialTests.cut(stage, server, client)
      let address = server.addresses[0]
      stage.simulation?.network.setConnects(.refused, to: address)
      for _ in 0..<2 { _ = try await failure { try await client.request(.echo, [1]) } }
      stage.simulation?.network.setConnects(nil, to: address)
      try await TrialTests.held(stage, server)
      try await client.expectEcho([2])
      #expect(await client.counters().trialsPassed == 0)
    }
  }
}
