// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What the application says on a connection before the client uses it.
@Suite struct PrepareTests {
  /// What a test sees of its server.
  struct Seen: Sendable {
    /// The types of the requests, in their order, with their connections.
    let requests = Tally<(MessageType, UInt64)>()
    /// The bodies of pushes.
    let pushes = Tally<[UInt8]>()

    var types: [MessageType] { requests.elements.map(\.0) }
    /// The connections of the requests of a type.
    func connections(of type: MessageType) -> [UInt64] {
      requests.elements.filter { $0.0 == type }.map(\.1)
    }
  }

  /// Runs a body with a server, and a client whose function sends a registration, of type 5. A call
  /// of the function adds to the tally, and gets its number.
  func run(
    server configure: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    client configureClient: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    prepare: @Sendable @escaping (Stage, Peer, Int) async throws -> Void = { _, peer, _ in
      _ = try await peer.request(.register, [0])
    },
    _ body:
      @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Seen, Tally<Void>) async throws
      -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      let (seen, calls) = (Seen(), Tally<Void>())
      let server = try await stage.serve { server in
        server.intercept { request, next in
          seen.requests.add((request.type, request.peer.connectionID))
          return try await next(request)
        }
        server.routeStreams()
        server.route(.register) { request in
          try await request.clock.sleep(for: .milliseconds(100))
          return request.body
        }
        server.route(20) { request in
          try await request.peer.push(8, [9])
          return try await request.peer.request(9, [1])
        }
        server.routeStream(21, .responseItems) { request, _, writer in
          while true {
            try await writer.write([1])
            try await request.clock.sleep(for: .seconds(1))
          }
        }
        server.onPush(7) { push, _ in seen.pushes.add(push.body) }
      } configure: {
        configure(&$0)
      }
      let client = try stage.client(of: server) {
        $0.prepare = { [unowned stage] peer in
          calls.add(())
          try await prepare(stage, peer, calls.count)
        }
        configureClient(&$0)
      }
      try await body(stage, server, client, seen, calls)
    }
  }

  // MARK: Order

  @Test func `it comes before waiting requests and before the state`() async throws {
    try await run(prepare: { _, peer, _ in
      for number in 0..<3 as Range<UInt8> { _ = try await peer.request(.register, [number]) }
    }) { stage, _, client, seen, _ in
      let waiting = (0..<3).map { client.submit(.echo, [$0]) }
      await seen.requests.reached(1)
      try await stage.clientLoop.sleep(for: .milliseconds(150))
      #expect(!client.state.isConnected && client.state != .idle, "\(client.state)")
      #expect(await client.counters().connects == 0)
      for task in waiting { _ = try await task.value }
      #expect(client.state.isConnected)
      #expect(seen.types == [.register, .register, .register, .echo, .echo, .echo])
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `typed calls, streams and handlers work on the connection`() async throws {
    let method = RPCMethod<[UInt8], [UInt8]>(.register, "Register")
    let ticks = RPCMethod<[UInt8], Streamed<[UInt8]>>(10, "Ticks")
    let states = Tally<ConnectionState>()
    try await run(prepare: { _, peer, _ in
      #expect(try await peer.request(method, [4]) == [4])
      var items: [[UInt8]] = []
      for try await item in peer.stream(ticks, [2]) { items.append(item) }
      #expect(items == [[0], [1]])
      #expect(try await peer.sendItems(11, []) { try await $0.write([1, 2]) } == Array("2".utf8))
      try await peer.push(7, [1])
      try peer.pushNow(7, [2])
      _ = try await peer.request(20, [])
    }) { stage, _, client, seen, _ in
      client.onPush(8) { _ in states.add(client.state) }
      // The handler asks over the same connection, too.
      client.onRequest(9) { request in try await request.peer.request(.echo, request.body) }
      try await client.connect()
      #expect(states.count == 1 && states.elements.allSatisfy { !$0.isConnected })
      try await stage.until { seen.pushes.count == 2 }
      #expect(seen.pushes.elements == [[1], [2]])
      #expect(Set(seen.requests.elements.map(\.1)).count == 1)
      #expect(seen.types == [.register, 10, 11, 20, .echo])
    }
  }

  @Test func `each new connection is prepared, and requests use the old one meanwhile`()
    async throws
  {
    let goOn = Latch()
    try await run(prepare: { _, peer, number in
      _ = try await peer.request(.register, [])
      if number == 2 { await goOn.wait() }
    }) { stage, server, client, seen, calls in
      try await client.expectEcho([1])
      client.pathChanged()
      await calls.reached(2)
      try await stage.until { seen.connections(of: .register).count == 2 }
      try await client.expectEcho([2])
      guard case .migrating = client.state else {
        Issue.record("\(client.state)")
        return
      }
      goOn.open()
      try await stage.until { await client.counters().connects == 2 }
      try await client.expectEcho([3])
      let (first, second) = (
        seen.connections(of: .register)[0], seen.connections(of: .register)[1]
      )
      #expect(seen.connections(of: .echo) == [first, first, second])
      // A connection that is lost is followed by a third.
      for peer in await server.peers() { peer.close() }
      try await stage.until { await client.counters().connects == 3 }
      try await client.expectEcho([4])
      #expect(calls.count == 3 && seen.types.suffix(2) == [.register, .echo])
      #expect(await client.counters().failedAttempts == 0)
    }
  }

  @Test func `a stream that it leaves open goes on`() async throws {
    let (items, end) = (Tally<[UInt8]>(), Tally<Bool>())
    try await run(
      client: { $0.timeouts.lingering = .seconds(20) },
      prepare: { _, peer, number in
        guard number == 1 else { return }
        peer.stream(21, [], on: .connectionLoop) {
          items.add($0)
        } completion: {
          end.add((try? $0.get()) != nil)
        }
        await items.reached(1)
      }
    ) { stage, _, client, _, calls in
      try await client.connect()
      try await client.expectEcho([1])
      await items.reached(100)
      #expect(await client.counters().connects == 1)
      client.pathChanged()
      try await stage.until { await client.counters().connects == 2 }
      let count = items.count
      await items.reached(count + 5)
      await end.reached(1)
      #expect(end.elements == [false] && calls.count == 2)
    }
  }

  @Test func `a renewal on the connection does not call it, and neither does a short link`()
    async throws
  {
    let uses = Tally<Void>()
    try await run(
      server: {
        $0.identity.authenticate = { _ in
          Authentication(Principal("ann"), validity: .seconds(10))
        }
      },
      client: {
        $0.identity.sendsCredentialUnencrypted = true
        $0.identity.credential = {
          uses.add(())
          return [1]
        }
      }
    ) { stage, _, client, _, calls in
      try await client.connect()
      await uses.reached(5)
      try await client.expectEcho([1])
      #expect(calls.count == 1)
      #expect(await client.counters().connects == 1)
    }
    let calls = Tally<Void>()
    try await Stage.pair(in: .short, client: { $0.prepare = { _ in calls.add(()) } }) {
      _, _, client in
      try await client.expectEcho([1])
      #expect(calls.count == 0)
    }
  }
}

extension MessageType {
  static let register: MessageType = 5
}

// MARK: - Failures

extension PrepareTests {
  @Test func `its failure is a failed connect, and the delays grow`() async throws {
    let windows = Tally<Duration>()
    try await run(prepare: { _, peer, number in
      if number <= 3 { _ = try await peer.request(.fail, []) }
    }) { _, server, client, seen, calls in
      client.observeLinks { _, event in
        if case .waiting(_, let window, _, _) = event { windows.add(window) }
      }
      let waiting = client.submit(.echo, [1], options: .patient)
      let impatient = client.submit(
        .echo, [2], options: RequestOptions(waitsForConnection: false))
      for error in [
        try await failure { try await client.connect() },
        try await failure { try await impatient.value },
      ] {
        #expect(error.code == .connectFailed && error.delivery == .notSent, "\(error)")
        #expect(error.detail.hasPrefix("`prepare` failed: request type=3 serial="), "\(error)")
        #expect(error.detail.contains("rejected 1234"), "\(error)")
        #expect(error.peer == server.addresses[0])
      }
      // One that is not patient fails at once while the client waits.
      let late = try await failure {
        try await client.request(.echo, [], options: RequestOptions(waitsForConnection: false))
      }
      #expect(late.code == .notConnected && late.detail.hasPrefix("`prepare` failed: "), "\(late)")
      #expect(try await waiting.value == [1])
      #expect(windows.elements == [.seconds(1), .seconds(2), .seconds(4)])
      #expect(calls.count == 4 && seen.types == [.fail, .fail, .fail, .echo])
      let counters = await client.counters()
      #expect(counters.failedAttempts == 3 && counters.connects == 1)
      #expect(await server.counters().openConnections == 1)
    }
  }

  @Test func `an error of the application is cut and escaped`() async throws {
    struct Odd: Error, CustomStringConvertible {
      let description = "line\n" + String(repeating: "x", count: 1_000)
    }
    try await run(prepare: { _, _, _ in throw Odd() }) { _, _, client, _, _ in
      let error = try await failure { try await client.connect() }
      #expect(error.detail.hasPrefix("`prepare` failed: line\\nxxx"), "\(error)")
      #expect(error.detail.utf8.count < 300)
    }
  }

  @Test func `it has the time of a connect, and its task is cancelled`() async throws {
    let cancelled = Tally<Void>()
    try await run(
      client: { $0.timeouts.connect = .seconds(3) },
      prepare: { stage, _, number in
        guard number == 1 else { return }
        do {
          try await stage.clientLoop.sleep(for: .seconds(1_000))
        } catch {
          cancelled.add(())
          throw error
        }
      }
    ) { stage, server, client, _, calls in
      let start = stage.clientLoop.clock.now
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed, "\(error)")
      #expect(error.detail == "`prepare` did not return within `timeouts.connect`", "\(error)")
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time >= .seconds(3) && time < .seconds(3.1), "\(time)")
      await cancelled.reached(1)
      try await stage.until { await server.counters().openConnections == 0 }
      try await client.expectEcho([1])
      #expect(calls.count == 2)
    }
  }

  @Test func `its requests time out, do not wait for room, and are not retried`() async throws {
    let errors = Tally<LongLinkError>()
    try await run(
      server: { $0.limits.maxInFlight = 2 },
      prepare: { _, peer, number in
        guard number == 1 else { return }
        let options = RequestOptions(timeout: .seconds(1))
        let tasks = (0..<3).map { _ in peer.submit(.hang, [], options: options) }
        for task in tasks.reversed() {
          errors.add(try await failure { try await task.value })
        }
        throw errors.elements[1]
      }
    ) { _, _, client, _, _ in
      let error = try await failure { try await client.connect() }
      #expect(error.detail.contains("deadlineExceeded"), "\(error)")
      #expect(errors.elements.map(\.code) == [.overloaded, .deadlineExceeded, .deadlineExceeded])
      #expect(errors.elements.map(\.delivery) == [.notSent, .sent, .sent])
      try await client.expectEcho([1])
    }
  }

  @Test(arguments: [true, false])
  func `a connection that ends meanwhile fails the connect, and says so`(_ drains: Bool)
    async throws
  {
    let (errors, cancelled) = (Tally<LongLinkError>(), Tally<Bool>())
    try await run(prepare: { _, peer, number in
      guard number == 1 else { return }
      errors.add(try await failure { try await peer.request(.hang, []) })
      cancelled.add(Task.isCancelled)
      errors.add(try await failure { try await peer.request(.echo, []) })
    }) { stage, server, client, _, calls in
      let waiting = client.submit(.echo, [3])
      try await stage.running(1, on: server)
      if drains {
        let peer = await server.peers()[0]
        stage.spawn { await server.drain(peer, within: .seconds(1)) }
      } else {
        for link in stage.simulation!.network.links(to: server.addresses[0]) {
          link.reset(.toClient)
        }
      }
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed, "\(error)")
      if !drains {
        #expect(error.detail.hasPrefix("the connection ended while `prepare` ran: "), "\(error)")
      }
      #expect(try await waiting.value == [3])
      await errors.reached(2)
      #expect(cancelled.elements == [true])
      #expect(errors.elements[0].delivery == .sent, "\(errors.elements)")
      #expect(calls.count == 2)
      #expect(await client.counters().failedAttempts == 1)
    }
  }

  @Test(arguments: [true, false])
  func `closing and suspending cancel it`(_ closes: Bool) async throws {
    let cancelled = Tally<Void>()
    try await run(prepare: { stage, _, number in
      guard number == 1 else { return }
      do {
        try await stage.clientLoop.sleep(for: .seconds(1_000))
      } catch {
        cancelled.add(())
        throw error
      }
    }) { stage, server, client, _, calls in
      let connecting = stage.spawn { try await failure { try await client.connect() } }
      await calls.reached(1)
      if closes { await client.close() } else { await client.suspend() }
      await cancelled.reached(1)
      #expect(try await connecting.value.code == (closes ? .closed : .notConnected))
      try await stage.until { await server.counters().openConnections == 0 }
      guard !closes else { return }
      client.resume()
      try await client.expectEcho([1])
      #expect(calls.count == 2)
    }
  }

  @Test func `a link that has stood its trial is prepared then`() async throws {
    let calls = Tally<Void>()
    try await Stage.pair(in: .bothWays, client: { $0.prepare = { _ in calls.add(()) } }) {
      stage, server, client in
      try await stage.cut(server, client)
      #expect(calls.count == 1)
      try await stage.trial(of: server)
      #expect(calls.count == 1)
      try await client.expectEcho([1])
      try await stage.until { client.state.isConnected }
      #expect(calls.count == 2)
      try await client.expectEcho([2])
      let counters = await client.counters()
      #expect(counters.trialsPassed == 1 && counters.connects == 2)
    }
  }
}
