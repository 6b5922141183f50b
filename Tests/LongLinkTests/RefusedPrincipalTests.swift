// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Clients that are not let in, or no longer, and what is held of them meanwhile.
@Suite struct RefusedPrincipalTests {
  @Test func `a principal that is shown the door cannot slip in by an older answer`() async throws {
    try await Stage.simulate { stage, _ in
      let answer = Latch()
      let server = try await AuthenticationTests.serve(stage) { request in
        let authentication = try AuthenticationTests.byKey(request)
        await answer.wait()
        return authentication
      }
      var clients: [String: SimulatedClient] = [:]
      for name in ["ann", "bob"] {
        clients[name] = try await AuthenticationTests.raw(stage, server)
        clients[name]?.send(.hello(credential: Array("key-\(name)".utf8)))
      }
      try await stage.until { await server.counters().connections.framesReceived == 2 }
      #expect(await server.endConnections(of: "bob", reason: "out") == 0)
      answer.open()
      let goaway = try await clients["bob"]?.waitForFrame(.goaway).goAwayFields
      #expect(goaway?.code == .unauthenticated && goaway?.reason == "out")
      try await clients["ann"]?.waitForFrame(.welcome)
      // A call that begins afterwards is not concerned.
      let again = try await AuthenticationTests.raw(stage, server)
      try await again.sayHello(.hello(credential: Array("key-bob".utf8)))
      #expect(await AuthenticationTests.names(of: server) == ["ann", "bob"])
      let authentications = await server.counters().authentications
      #expect(authentications.accepted == 2 && authentications.refused == 1)
    }
  }

  @Test(arguments: [Duration.zero, .seconds(-3_600)])
  func `a credential that has expired is refused`(_ validity: Duration) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await AuthenticationTests.serve(stage) { _ in
        Authentication(Principal("ann"), validity: validity)
      }
      let client = try await AuthenticationTests.raw(stage, server)
      client.send([.hello(credential: [1]), .request(7, serial: 50)])
      let goaway = try await client.waitForFrame(.goaway).goAwayFields
      #expect(goaway?.code == .unauthenticated && goaway?.reason.contains("expired") == true)
      try await client.waitForEnd()
      #expect(client.record.frames(of: .welcome).isEmpty)
      let counters = await server.counters()
      #expect(counters.authentications.refused == 1 && counters.authentications.accepted == 0)
      #expect(counters.connections.handled == 0)
    }
  }

  @Test func `the call of a connection that ends is cancelled at once`() async throws {
    try await Stage.simulate { stage, _ in
      let cancelled = Tally<Int>()
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { [loop = stage.serverLoop] request in
          do { try await loop.sleep(for: .seconds(3)) } catch {
            cancelled.add(1)
            throw error
          }
          return try AuthenticationTests.byKey(request)
        }
      })
      let client = try await AuthenticationTests.raw(stage, server)
      client.send(.hello(credential: Array("key-ann".utf8)))
      try await stage.until { await server.counters().connections.framesReceived == 1 }
      // The connection lingers for a peer that does not read.
      client.stopReading()
      async let end: Void = server.shutDown(within: .seconds(2))
      try await stage.until { cancelled.elements == [1] }
      #expect(await server.counters().openConnections == 1)
      await end
      let authentications = await server.counters().authentications
      #expect(authentications.accepted == 0 && authentications.failed == 0)
    }
  }

  @Test func `the request of a short link has to come in time, identified or not`() async throws {
    for identifies in [false, true] {
      try await Stage.simulate { stage, _ in
        let server = try await stage.serve(configure: {
          if identifies { $0.identity.authenticate = { _ in .anonymous } }
        })
        _ = try await stage.gateway(for: server)
        let client = try await SimulatedClient.connect(
          to: Way.gatewayAddress, on: stage.clientLoop)
        client.send(.hello())
        try await stage.until { await server.counters().violations == ["firstFrameTimeout": 1] }
        try await stage.until { await server.counters().openConnections == 0 }
      }
    }
  }

  @Test func `names that only look the same are those of two principals`() async throws {
    let (composed, decomposed) = ("Ren\u{E9}", "Rene\u{301}")
    #expect(composed == decomposed)
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.route(7, requires: .principal(named: composed)) { _ in [7] }
        server.route(8, requires: .attribute("role", composed)) { _ in [8] }
      } configure: {
        $0.identity.authenticate = { request in
          let name = String(decoding: request.credential ?? [], as: UTF8.self)
          return Authentication(Principal(name, attributes: ["role": name]))
        }
      }
      var clients: [SimulatedClient] = []
      for (name, code) in [(composed, ResponseCode.ok), (decomposed, .forbidden)] {
        let client = try await AuthenticationTests.raw(stage, server)
        try await client.sayHello(.hello(credential: Array(name.utf8)))
        #expect(try await client.request(7).code == code)
        #expect(try await client.request(8).code == code)
        clients.append(client)
      }
      #expect(await server.endConnections(of: composed) == 1)
      let left = await AuthenticationTests.names(of: server)
      #expect(left.map { Array($0.utf8) } == [Array(decomposed.utf8)])
    }
  }

  @Test func `a stream of a principal that is shown the door ends with the reason`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.routeStream(7, .responseItems) { _, _, writer in
          try await writer.write([1])
          while true { try await stage.serverLoop.sleep(for: .seconds(1)) }
        }
      } configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      }
      let client = try stage.client(of: server) {
        $0.identity.credential = { Array("key-bob".utf8) }
        $0.identity.sendsCredentialUnencrypted = true
      }
      var items = 0
      let error = try await failure {
        for try await _ in client.stream(7, []) {
          items += 1
          #expect(await server.endConnections(of: "bob", reason: "the account is closed") == 1)
        }
      }
      #expect(items == 1 && error.closeReason == .goneAway(.unauthenticated), "\(error)")
      #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
      #expect(error.detail.contains("the account is closed"), "\(error)")
    }
  }

  @Test(arguments: [ResponseCode.unauthenticated, .forbidden])
  func `new credentials help against 401, and not against 403`(code: ResponseCode) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in
          throw Rejection(code, code == .forbidden ? "closed" : "unknown token")
        }
      })
      let calls = Tally<UInt8>()
      let client = try stage.client(of: server) {
        $0.identity.credential = {
          calls.add(1)
          return [UInt8(calls.elements.count)]
        }
        $0.identity.sendsCredentialUnencrypted = true
      }
      let error = try await failure {
        try await client.request(.echo, [], options: RequestOptions(timeout: .seconds(20)))
      }
      // The error says why there was no connection.
      #expect(error.response == code && error.delivery == .notSent, "\(error)")
      #expect(error.closeReason == .goneAway(code), "\(error)")
      if code == .forbidden {
        #expect(error.code == .notAccepted && calls.elements.count == 2, "\(error)")
        #expect(client.state == .notAccepted(.forbidden))
        // Asked again, it tries again, and says nothing else before.
        let states = client.states()
        _ = try await failure { try await client.connect() }
        var seen: [ConnectionState] = []
        for await state in states where seen.last != state {
          seen.append(state)
          if seen.count > 1, case .notAccepted = state { break }
        }
        #expect(seen.filter { $0 == .notAccepted(.unauthenticated) } == [], "\(seen)")
      } else {
        #expect(error.code == .deadlineExceeded && calls.elements.count > 2, "\(error)")
      }
    }
  }
}
