// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// How a client gets and uses the credential that it shows.
@Suite struct CredentialTests {
  private static func client(
    of server: LongLinkServer, _ key: Key, _ stage: Stage,
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> LongLinkClient {
    try stage.client(of: server) {
      $0.identity.credential = { key.use() }
      $0.identity.sendsCredentialUnencrypted = true
      configure(&$0)
    }
  }

  @Test(
    arguments: [
      (401, true, "the server did not accept the credential (401)"),
      (
        401, false,
        "the server did not accept this client, which has no `identity.credential` (401)"
      ),
      (403, true, "the server does not allow this client to connect (403)"),
      (503, true, "the server is draining, and takes no new clients (503)"),
      (400, true, "the server ended the connection because of what this side sent (400)"),
      (507, true, "the server ended the connection (507)"),
    ] as [(ResponseCode, Bool, String)])
  func `the error of a client that is turned away says what happened`(
    _ code: ResponseCode, _ hasCredential: Bool, _ text: String
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.handshake = .refuse(code, "so it is")
      let key = Key("a")
      let client = try stage.client(to: [server.endpoint]) {
        if hasCredential { $0.identity.credential = { key.use() } }
        $0.identity.sendsCredentialUnencrypted = true
      }
      let error = try await failure { try await client.connect() }
      #expect(error.detail == "\(text): so it is")
      await server.stop()
    }
  }

  @Test func `it is asked for at each connect`() async throws {
    try await Stage.simulate { stage, _ in
      let seen = Tally<[UInt8]>()
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { request in
          seen.add(request.credential ?? [])
          return .anonymous
        }
      })
      let key = Key("a")
      let client = try Self.client(of: server, key, stage)
      try await client.connect()
      key.text = "b"
      await server.endConnections(of: "nobody")
      for peer in await server.peers() { await server.drain(peer) }
      try await client.expectEcho([1])
      #expect(seen.elements == [Array("a".utf8), Array("b".utf8)] && key.uses.count == 2)
    }
  }

  @Test func `the same one refused twice stops the client until it is asked to connect`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let key = Key("wrong")
      let client = try Self.client(of: server, key, stage)
      // It would wait for a connection, if there was hope.
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.code == .notAccepted && error.response == .unauthenticated, "\(error)")
      #expect(error.delivery == .notSent && error.detail.contains("unknown key"), "\(error)")
      #expect(client.state == .notAccepted(.unauthenticated) && key.uses.count == 2)
      try await stage.clientLoop.sleep(for: .seconds(10_000))
      #expect(key.uses.count == 2)
      let later = try await failure { try await client.request(.echo, [1]) }
      #expect(later.code == .notAccepted && key.uses.count == 2)
      // Asked again, it tries again; and stops again.
      let refused = try await failure { try await client.connect() }
      #expect(refused.code == .notAccepted && key.uses.count == 3, "\(refused)")
      try await stage.until { client.state == .notAccepted(.unauthenticated) }
      key.text = "key-ann"
      try await client.connect()
      try await client.expectEcho([2])
      #expect(await server.counters().authentications.accepted == 1)
    }
  }

  @Test func `a final refusal is told in place of what failed between`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let key = Key("wrong")
      let client = try stage.client(to: server.endpoints + [.host("10.0.0.1", port: 9)]) {
        $0.identity.credential = { key.use() }
        $0.identity.sendsCredentialUnencrypted = true
      }
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.code == .notAccepted && error.response == .unauthenticated, "\(error)")
      #expect(await server.counters().authentications.refused == 2)
    }
  }

  @Test func `another one after a refusal is tried`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let count = Tally<Int>()
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          count.add(1)
          let number = count.elements.count
          return Array((number < 5 ? "wrong-\(number)" : "key-ann").utf8)
        }
      }
      try await client.expectEcho([1])
      #expect(count.elements.count == 5)
    }
  }

  @Test(arguments: ["", "k"])
  func `credentials that expire every two seconds lose no request`(_ text: String) async throws {
    for seed: UInt64 in 1...5 {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let server = try await stage.serve { server in
          server.route(.echo) { request in
            try await request.clock.sleep(for: .milliseconds(30))
            return request.body
          }
        } configure: {
          $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(2))
          }
          $0.identity.credentialGrace = .seconds(2)
        }
        let client = try Self.client(of: server, Key(text), stage)
        let end = simulation.now.advanced(by: .seconds(60))
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<20 {
            group.addTask {
              while simulation.now < end {
                let body = [UInt8(number)]
                #expect(try await client.request(.echo, body) == body)
                try await stage.clientLoop.sleep(for: .milliseconds(number))
              }
            }
          }
          try await group.waitForAll()
        }
        let counters = await client.counters()
        #expect(counters.requests.lost == 0 && counters.requests.rejected == 0)
        // It moves without a credential that could be renewed on the connection.
        let renewed = await server.counters().credentialsRenewed
        #expect(text.isEmpty ? counters.connects >= 60 / 2 : renewed >= 60 / 2, "\(counters)")
        #expect(text.isEmpty || counters.connects == 1)
        // In time: no connection stayed until its credential had expired.
        #expect(await server.counters().authentications.expired == 0)
      }
    }
  }

  @Test func `a move to a new credential that fails is tried again before the old one expires`()
    async throws
  {
    struct NoToken: Error {}
    for seed: UInt64 in 1...5 {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let server = try await stage.serve(configure: {
          $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(60))
          }
        })
        let calls = Tally<Int>()
        let client = try stage.client(of: server) {
          $0.identity.sendsCredentialUnencrypted = true
          $0.identity.credential = {
            calls.add(1)
            if calls.count == 2 || calls.count == 3 { throw NoToken() }
            return []
          }
        }
        try await client.connect()
        try await simulation.sleep(for: .seconds(59))
        let counters = await server.counters().authentications
        #expect(calls.count == 4 && counters.accepted == 2 && counters.expired == 0)
      }
    }
  }

  @Test func `a function that hangs fails connects, and is called again when it has returned`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve()
      let (calls, goOn) = (Tally<Int>(), Latch())
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          calls.add(1)
          await goOn.wait()
          return [1]
        }
      }
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed, "\(error)")
      try await stage.clientLoop.sleep(for: .seconds(1_000))
      #expect(calls.elements.count == 1)
      goOn.open()
      try await client.connect()
      try await client.expectEcho([1])
      #expect(calls.elements.count == 2)
    }
  }

  @Test func `one that is too long, or an error, fails the connect by name`() async throws {
    struct NoToken: Error {}
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve()
      let count = Tally<Int>()
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          count.add(1)
          if count.elements.count == 1 { throw NoToken() }
          return [UInt8](repeating: 0, count: count.elements.count == 2 ? 60_001 : 60_000)
        }
      }
      let first = try await failure { try await client.connect() }
      #expect(first.detail.contains("NoToken"), "\(first)")
      let second = try await failure { try await client.connect() }
      #expect(second.detail.contains("60001 bytes"), "\(second)")
      try await client.connect()
      try await client.expectEcho([1])
    }
  }

  @Test func `a server's end of a credential brings the client back at once`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let client = try Self.client(of: server, Key("key-ann"), stage)
      try await client.expectEcho([1])
      let begin = simulation.now
      await server.endConnections(of: "ann")
      try await client.expectEcho([2])
      #expect(begin.duration(to: simulation.now) < .seconds(1))
      #expect(await server.counters().authentications.accepted == 2)
    }
  }
}
