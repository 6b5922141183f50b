// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Credentials that are renewed on the connection.
@Suite struct RenewalInPlaceTests {
  /// Accepts credentials such as `ann reader 12`: a name, a role and a validity in seconds; refuses
  /// those whose first word is a code, such as `401`. After a delay in milliseconds, if there is
  /// one more word.
  @Sendable static func judge(
    _ request: AuthenticationRequest, on loop: EventLoop
  ) async throws -> Authentication {
    let words = String(decoding: request.credential ?? [], as: UTF8.self).split(separator: " ")
    if words.count > 3, let delay = Int(words[3]) {
      try await loop.sleep(for: .milliseconds(delay))
    }
    switch words[0] {
    case "401": throw Rejection(.unauthenticated, "an old token")
    case "403": throw Rejection(.forbidden, "the account is closed")
    case "500": throw CancellationError()
    default: break
    }
    return Authentication(
      Principal(String(words[0]), attributes: ["role": String(words[1])]),
      validity: .seconds(Int(words[2])!))
  }

  /// Runs a body with a server that judges so, and a client whose credential is the key's.
  /// 60 asks for the role `writer`; 61 sends an item each second, without an end.
  static func run(
    _ first: String, in environment: TestEnvironment = .simulated,
    configure: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Key) async throws -> Void
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve { server in
        server.routeStreams()
        server.route(60, requires: .attribute("role", "writer")) { request in request.body }
        server.routeStream(61, .responseItems) { request, _, writer in
          while true {
            try await writer.write([1])
            try await request.clock.sleep(for: .seconds(1))
          }
        }
      } configure: {
        $0.identity.authenticate = { [loop = stage.serverLoop] in try await judge($0, on: loop) }
        configure(&$0)
      }
      let key = Key(first)
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = { key.use() }
      }
      try await body(stage, server, client, key)
    }
  }

  @Test func `a stream of an hour outlives three hundred credentials of twelve seconds`()
    async throws
  {
    try await Self.run("ann reader 12") { stage, server, client, _ in
      let begin = stage.clientLoop.clock.now
      let pushes = client.pushes()
      var items = 0
      for try await item in client.stream(61, []) {
        #expect(item == [1])
        items += 1
        if items % 60 == 0 {
          try await client.expectEcho([UInt8(items / 60)])
          for peer in await server.peers() { try await peer.push(7, []) }
        }
        if begin.duration(to: stage.clientLoop.clock.now) >= .seconds(3_600) { break }
      }
      #expect(items >= 3_600)
      var pushed = 0
      for await _ in pushes {
        pushed += 1
        if pushed == 60 { break }
      }
      let counters = await server.counters()
      // Between 75 and 90 % of 12 s.
      #expect((333...400).contains(counters.credentialsRenewed), "\(counters.credentialsRenewed)")
      #expect(counters.connectionsAccepted == 1 && counters.authenticationsAccepted == 1)
      #expect(counters.credentialsExpired == 0 && counters.authenticationsRefused == 0)
      let own = await client.counters()
      #expect(own.connects == 1 && own.requests.lost == 0 && own.migrations == 0)
      // Two frames each, and nothing else but what was asked for.
      let renewals = 2 * counters.credentialsRenewed
      #expect(counters.connections.framesReceived < renewals / 2 + 500)
    }
  }

  @Test func `after a refusal the credential keeps its own end, and the error says why`()
    async throws
  {
    try await Self.run("ann reader 100") { stage, server, client, key in
      let leaving = Tally<LinkInstant>()
      client.observeLinks { time, event in
        if case .goaway(_, .unauthenticated, _, _) = event { leaving.add(time) }
      }
      try await client.connect()
      let begin = stage.clientLoop.now
      key.text = "401 reader 100"
      try await stage.clientLoop.sleep(for: .seconds(99))
      try await client.expectEcho([1])
      // The same was refused twice.
      #expect(key.uses.count == 3 && client.state.isConnected)
      #expect(await server.counters().authenticationsRefused == 2)
      let request = client.submit(.hang, [], options: .patient)
      try await stage.until { client.state == .notAccepted(.unauthenticated) }
      #expect(leaving.elements.count == 1)
      let age = Double(leaving.elements[0] - begin) / 1_000_000_000
      #expect((99.9...100.2).contains(age), "\(age)")
      #expect(await server.counters().credentialsExpired == 1)
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.code == .notAccepted && error.response == .unauthenticated, "\(error)")
      #expect(error.detail.contains("an old token"), "\(error)")
      #expect(key.uses.count == 3)
      request.cancel()
      // Asked to connect, it asks its application again.
      key.text = "ann reader 100"
      try await client.connect()
      try await client.expectEcho([2])
    }
  }

  @Test func `an application that asks to connect gets another renewal`() async throws {
    try await Self.run("ann reader 100") { stage, server, client, key in
      try await client.connect()
      key.text = "401 reader 100"
      try await stage.until { await server.counters().authenticationsRefused == 2 }
      key.text = "ann reader 100"
      try await client.connect()
      try await stage.clientLoop.sleep(for: .seconds(2))
      #expect(await server.counters().credentialsRenewed == 1)
      try await stage.clientLoop.sleep(for: .seconds(300))
      try await client.expectEcho([1])
      let counters = await client.counters()
      #expect(counters.connects == 1, "\(counters)")
    }
  }

  @Test func `the end of a former connection does not stop a client that connects anew`()
    async throws
  {
    try await Self.run("ann reader 100") { stage, server, client, key in
      let hanging = client.submit(.hang, [], options: .patient)
      try await stage.running(1, on: server)
      key.text = "401 reader 100"
      try await stage.until { await server.counters().authenticationsRefused == 2 }
      let suspending = stage.spawn { await client.suspend(within: .seconds(5)) }
      try await stage.until { client.state == .suspended }
      // The answer to the next one takes longer than the former connection lasts.
      key.text = "ann reader 100 3000"
      client.resume()
      try await stage.clientLoop.sleep(for: .seconds(1))
      hanging.cancel()
      try await stage.until { await server.counters().connectionsAccepted == 2 }
      try await client.connect()
      try await client.expectEcho([1])
      _ = await suspending.result
    }
  }

  @Test func `a reason with U+0000 reaches the client with another character in its place`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { request in
          guard request.credential == [1] else {
            throw Rejection(.unauthenticated, "un\0known")
          }
          return Authentication(Principal("ann"), validity: .seconds(100))
        }
      })
      let client = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
      let features: WireFeatures = [.metadata, .fragments, .renewal]
      try await client.sayHello(.hello(features: features, credential: [1]))
      #expect(try await client.renew([2]).code == .unauthenticated)
      let ended = await server.endConnections(of: "ann", reason: "the\0end")
      #expect(ended == 1)
      let other = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
      other.send(.hello(features: features, credential: [2]))
      _ = try await other.waitForEnd()
      let reasons = [client, other].flatMap { $0.record.frames(of: .goaway) }
        .map { $0.goAwayFields?.reason }
      #expect(reasons == ["the\u{FFFD}end", "un\u{FFFD}known"])
    }
  }

  @Test func `a request that waits is told that no connection follows`() async throws {
    try await Self.run("ann reader 20") { stage, server, client, key in
      try await client.connect()
      key.text = "403 reader 20"
      try await stage.until { await server.counters().authenticationsRefused == 2 }
      for peer in await server.peers() { await server.drain(peer) }
      let error = try await failure { try await client.request(.echo, [1]) }
      #expect(error.code == .notAccepted && error.response == .forbidden, "\(error)")
      #expect(client.state == .notAccepted(.forbidden))
    }
  }

  @Test func `another client's credential is refused, and the connection goes on`() async throws {
    try await Self.run("ann reader 100") { stage, server, client, key in
      try await client.connect()
      key.text = "bob writer 100"
      try await stage.until { await server.counters().authenticationsRefused == 1 }
      #expect(await AuthenticationTests.names(of: server) == ["ann"])
      key.text = "ann reader 100"
      try await stage.until { await server.counters().credentialsRenewed == 1 }
      try await client.expectEcho([1])
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `new attributes hold for requests that come later`() async throws {
    try await Self.run("ann reader 20") { stage, server, client, key in
      let error = try await failure { try await client.request(60, [1]) }
      #expect(error.response == .forbidden)
      key.text = "ann writer 20"
      try await stage.until { await server.counters().credentialsRenewed == 1 }
      #expect(try await client.request(60, [1]) == [1])
    }
  }

  @Test func `a credential does not end while the next one is decided about`() async throws {
    // Asked for at 7.5 to 9 s, and answered 4 s later.
    try await Self.run("ann reader 10") { stage, server, client, key in
      try await client.connect()
      key.text = "ann reader 30 4000"
      try await stage.clientLoop.sleep(for: .milliseconds(10_500))
      #expect(await server.counters().credentialsExpired == 0)
      try await stage.until { await server.counters().credentialsRenewed == 1 }
      key.text = "401 reader 30 4000"
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.migrations == 0)
      // Refused only after its former one has ended: that ends at once.
      let renewed = stage.clientLoop.clock.now
      try await stage.until { await server.counters().credentialsExpired == 1 }
      let age = renewed.duration(to: stage.clientLoop.clock.now)
      #expect(age > .seconds(29) && age < .seconds(34.5), "\(age)")
    }
  }

  @Test(arguments: ["500 reader 20", "ann reader 20 60000"])
  func `what a server cannot decide is shown again`(_ text: String) async throws {
    try await Self.run("ann reader 60") {
      $0.identity.timeout = .seconds(1)
    } _: { stage, server, client, key in
      try await client.connect()
      key.text = text
      try await stage.clientLoop.sleep(for: .seconds(56))
      let counters = await server.counters()
      #expect((1...6).contains(counters.authenticationsFailed + counters.authenticationsTimedOut))
      key.text = "ann reader 600"
      try await stage.until { await server.counters().credentialsRenewed == 1 }
      #expect(await client.counters().connects == 1)
      #expect(await server.counters().credentialsExpired == 0)
    }
  }

  @Test func `an application without a credential is asked again`() async throws {
    struct Down: Error {}
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(60)) }
      })
      let calls = Tally<Int>()
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          calls.add(0)
          if calls.count == 2 || calls.count == 3 { throw Down() }
          return [1]
        }
      }
      try await client.connect()
      try await stage.clientLoop.sleep(for: .seconds(59))
      let counters = await server.counters()
      #expect(calls.count == 4 && counters.credentialsRenewed == 1)
      #expect(counters.authenticationsAccepted == 1 && counters.credentialsExpired == 0)
    }
  }

  @Test func `an empty credential is shown on a new connection`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in Authentication(Principal("ann"), validity: .seconds(10)) }
      })
      let calls = Tally<Int>()
      let client = try stage.client(of: server) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          calls.add(0)
          return calls.count == 1 ? [1] : []
        }
      }
      try await client.connect()
      try await stage.clientLoop.sleep(for: .seconds(10))
      let counters = await client.counters()
      #expect(counters.connects == 2 && counters.requests.lost == 0)
      #expect(await server.counters().authenticationsAccepted == 2)
    }
  }

  @Test(arguments: [false, true])
  func `a server without the feature gets a new connection in time`(
    hasFeature: Bool
  ) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4_000))
      server.handshake = .welcome(
        features: hasFeature ? [.metadata, .renewal] : [.metadata],
        credentialExpires: .seconds(10))
      let key = Key("k")
      let client = try stage.client(to: [server.endpoint]) {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = { key.use() }
      }
      try await client.connect()
      try await stage.clientLoop.sleep(for: .seconds(100))
      let connects = Int(await client.counters().connects)
      #expect(hasFeature ? connects == 1 : (10...14).contains(connects), "\(connects)")
      #expect((11...14).contains(key.uses.count))
      #expect(server.renewals.count == (hasFeature ? key.uses.count - 1 : 0))
      await server.stop()
    }
  }

  @Test func `over a real connection too, a stream outlives its client's credential`() async throws
  {
    try await Self.run("ann reader 6", in: .loopback) { stage, server, client, key in
      var (items, renewed) = (0, false)
      for try await item in client.stream(61, []) {
        #expect(item == [1])
        items += 1
        renewed = await server.counters().credentialsRenewed > 0
        // Also after the end of the first one.
        if renewed, items > 7 { break }
      }
      #expect(renewed && key.uses.count >= 2)
      try await client.expectEcho([1])
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.requests.lost == 0)
    }
  }

  @Test func `the end of a principal's connections refuses its renewals too`() async throws {
    try await Self.run("ann reader 10") { stage, server, client, key in
      try await client.connect()
      let request = try await stage.hang(client, on: server)
      key.text = "ann reader 10 2000"
      try await stage.until { key.uses.count == 2 }
      try await stage.clientLoop.sleep(for: .milliseconds(500))
      #expect(await server.endConnections(of: "ann", within: .seconds(10), reason: "out") == 1)
      try await stage.until { await server.counters().authenticationsRefused == 1 }
      #expect(await server.counters().credentialsRenewed == 0)
      request.cancel()
    }
  }
}
