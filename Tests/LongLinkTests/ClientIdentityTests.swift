// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// A client is one client to a server, whatever connections it has.
@Suite struct ClientIdentityTests {
  private static func identity(_ byte: UInt8) throws -> ClientIdentity {
    try ClientIdentity(bytes: [UInt8](repeating: byte, count: 16))
  }

  // MARK: Moving

  @Test func `a client that moves gets each push once, and is not reported as gone`() async throws {
    try await Stage.simulate { stage, simulation in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let client = try stage.client(of: server)
      let pushes = Tally<[UInt8]>()
      client.onPush(7) { pushes.add($0.body) }
      let stream = client.watch(in: stage)
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      client.pathChanged(network: "other")
      try await stage.until { await server.counters().openConnections == 2 }
      _ = try await client.request(.echo, [])
      let peers = await server.peers()
      #expect(peers == [peer] && peers[0] !== peer && peers[0].id == peer.id)
      #expect(peers[0].connectionID == 2 && peer.connectionID == 1)
      for number in 0..<10 {
        #expect(try await server.broadcast(7, [UInt8(number)]).queued == 1)
      }
      // The peer of the old connection sends over the new one.
      try await peer.push(7, [10])
      try await stage.until { pushes.elements.count == 11 }
      #expect(pushes.elements == (0...10).map { [UInt8($0)] })
      #expect(await server.counters().clients == 1)
      // The old connection ends, and the peer that came with it goes on.
      stream.cancel()
      try await stage.until { await server.counters().openConnections == 1 }
      try await peer.push(7, [11])
      try await stage.until { pushes.elements.count == 12 }
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(
        told.events.elements == [
          "client 1", "connection 1 of 1", "connection 2 of 1", "connection 1 of 1 ended",
          "connection 2 of 1 ended", "client 1 left",
        ])
      #expect(await server.counters().clients == 0)
      let error = try await failure { try await peer.push(7, [0]) }
      #expect(error.code == .closed, "\(error)")
    }
  }

  @Test func `requests of the server go to the newest connection of the client`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let client = try stage.client(of: server)
      let links = Tally<UInt64>()
      client.onRequest(5) { request in
        links.add(request.peer.connectionID)
        return request.body
      }
      let stream = client.watch(in: stage)
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      #expect(try await peer.request(5, [1]) == [1])
      client.pathChanged(network: "other")
      try await stage.until { await server.peers().first?.connectionID == 2 }
      #expect(try await peer.request(5, [2]) == [2])
      #expect(Set(links.elements).count == 2)
      stream.cancel()
    }
  }

  @Test func `a first frame that breaks a rule makes no client`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let stranger = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      stranger.send(.welcome())
      _ = try await stranger.waitForEnd()
      stranger.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(told.events.elements.isEmpty)
      #expect(await server.counters().clients == 0)
    }
  }

  // MARK: Being away

  @Test(arguments: [(5, false), (60, true)])
  func `a client that comes back within the linger was never gone`(
    _ seconds: Int, _ leaves: Bool
  ) async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp) { $0.identity.linger = .seconds(30) }
      let identity = try Self.identity(1)
      let client = try stage.client(of: server) { $0.identity.client = identity }
      _ = try await client.request(.echo, [])
      let peer = await server.peers()[0]
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().clients == 1)
      #expect(await server.peers().isEmpty)
      #expect(try await failure { try await peer.push(7, []) }.code == .closed)
      try await stage.clientLoop.sleep(for: .seconds(seconds))
      let again = try stage.client(of: server) { $0.identity.client = identity }
      _ = try await again.request(.echo, [])
      #expect(told.count("client 1 left") == (leaves ? 1 : 0))
      let id: UInt64 = leaves ? 2 : 1
      #expect(await server.peers().map(\.id) == [id])
      if !leaves { try await peer.push(7, []) }
      await again.close()
      try await stage.until { await server.counters().clients == 0 }
      #expect(told.count("client \(id) left") == 1)
      // A server that shuts down waits for nobody.
      let last = try stage.client(of: server) { $0.identity.client = identity }
      _ = try await last.request(.echo, [])
      await last.close()
      try await stage.until { await server.counters().openConnections == 0 }
      await server.shutDown()
      #expect(told.count("client 3 left") == 1 && told.events.elements.last == "client 3 left")
    }
  }

  @Test func `while a client is away, it is in no list and gets no push, not even afterwards`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp) {
        $0.identity.linger = .seconds(30)
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      }
      let identity = try Self.identity(1)
      func connect() throws -> LongLinkClient {
        try stage.client(of: server) {
          $0.identity.client = identity
          $0.identity.credential = { Array("key-ann".utf8) }
          $0.identity.sendsCredentialUnencrypted = true
        }
      }
      let client = try connect()
      _ = try await client.request(.echo, [])
      let peer = try #require(server.peers(of: "ann").first)
      #expect(await server.peers() == [peer])
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      // It counts as a client, and has not left; but there is no way to it.
      #expect(await server.counters().clients == 1 && told.count("client 1 left") == 0)
      #expect(await server.peers().isEmpty && server.peers(of: "ann").isEmpty)
      #expect(try await server.push(to: "ann", 7, [1]) == BroadcastReport())
      #expect(try await server.broadcast(7, [2]) == BroadcastReport())
      #expect(try await failure { try await peer.push(7, [3]) }.code == .closed)
      try await stage.clientLoop.sleep(for: .seconds(20))
      let again = try connect()
      let pushes = Tally<[UInt8]>()
      again.onPush(7) { pushes.add($0.body) }
      _ = try await again.request(.echo, [])
      #expect(await server.peers() == [peer] && server.peers(of: "ann") == [peer])
      try await peer.push(7, [4])
      #expect(try await server.push(to: "ann", 7, [5]).queued == 1)
      #expect(try await server.broadcast(7, [6]).queued == 1)
      try await stage.until { pushes.elements.count == 3 }
      #expect(pushes.elements == [[4], [5], [6]])
      #expect(told.count("client 1") == 1 && told.count("client 1 left") == 0)
    }
  }

  @Test func `no more clients are waited for than may be connected`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp) {
        $0.identity.linger = .seconds(1_000)
        $0.limits.maxConnections = 4
      }
      for number in 0..<20 {
        let client = try stage.client(of: server) {
          $0.identity.client = try! Self.identity(UInt8(number))
        }
        _ = try await client.request(.echo, [])
        await client.close()
        try await stage.until { await server.counters().openConnections == 0 }
      }
      #expect(await server.counters().clients == 4)
      #expect(told.events.elements.count { $0.hasSuffix("left") } == 16)
    }
  }

  @Test func `a dead connection is found soon after the client has opened the next one`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp) {
        $0.heartbeat = Heartbeat(interval: .seconds(300), timeout: .seconds(5))
      }
      let (first, second) = (simulation.machine(named: "wifi"), simulation.machine(named: "cell"))
      let identity = try Self.identity(1)
      let old = try stage.client(of: server, on: simulation.eventLoop(named: "old", on: first)) {
        $0.identity.client = identity
        $0.reconnect.afterLostHeartbeat = .seconds(1_000)
      }
      _ = try await old.request(.echo, [])
      simulation.network.isolate(first)
      try await stage.clientLoop.sleep(for: .seconds(20))
      #expect(await server.counters().openConnections == 1)
      let new = try stage.client(of: server, on: simulation.eventLoop(named: "new", on: second)) {
        $0.identity.client = identity
      }
      _ = try await new.request(.echo, [])
      #expect(await server.counters().openConnections == 2)
      try await stage.clientLoop.sleep(for: .seconds(6))
      #expect(await server.counters().openConnections == 1)
      #expect(told.count("connection 1 of 1 ended") == 1 && told.count("client 1 left") == 0)
      simulation.heal()
    }
  }

  // MARK: Whose identity it is

  @Test func `a fifth connection ends the oldest, whose client comes back with a growing delay`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let identity = try Self.identity(1)
      let clients = try (0..<5).map { _ in
        try stage.client(of: server) { $0.identity.client = identity }
      }
      for client in clients { try await client.connect() }
      try await stage.clientLoop.sleep(for: .seconds(600))
      #expect(await server.counters().openConnections <= 5)
      #expect(told.events.elements.count { $0.hasPrefix("client") } == 1)
      // Five that came back at once would have ended each other's connections without a pause.
      let opened = told.events.elements.count { !$0.hasSuffix("ended") } - 1
      #expect(opened > 8 && opened < 200, "\(opened) connections")
      #expect(await server.peers().count == 1)
    }
  }

  @Test func `an identity holds for one principal alone`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp) {
        $0.identity.authenticate = { request in
          Authentication(Principal(String(decoding: request.credential ?? [], as: UTF8.self)))
        }
      }
      let identity = try Self.identity(1)
      func client(_ name: String, _ identity: ClientIdentity) throws -> LongLinkClient {
        try stage.client(of: server) {
          $0.identity.client = identity
          $0.identity.credential = { Array(name.utf8) }
          $0.identity.sendsCredentialUnencrypted = true
        }
      }
      let (ann, bob) = (try client("ann", identity), try client("bob", identity))
      let phone = try client("ann", Self.identity(2))
      let heard = Tally<String>()
      for (name, client) in [("ann", ann), ("bob", bob), ("phone", phone)] {
        client.onPush(7) { _ in heard.add(name) }
        _ = try await client.request(.echo, [])
      }
      #expect(await server.peers().map { $0.principal?.name } == ["ann", "bob", "ann"])
      #expect(server.peers(of: "ann").map(\.id) == [1, 3])
      #expect(server.peers(of: "bob").map(\.id) == [2] && server.peers(of: "eve").isEmpty)
      #expect(try await server.push(to: "ann", 7, [1]).queued == 2)
      #expect(try await server.push(to: "eve", 7, [1]).queued == 0)
      try await stage.until { heard.elements.count == 2 }
      #expect(Set(heard.elements) == ["ann", "phone"])
      #expect(await server.endConnections(of: "bob") == 1)
      // It comes back, as the same client or as a new one.
      try await stage.until { server.peers(of: "bob").first.map { $0.connectionID > 3 } ?? false }
    }
  }

  @Test func `closing or draining a peer ends all connections of the client`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let identity = try Self.identity(1)
      for drains in [false, true] {
        let clients = try (0..<2).map { _ in
          try stage.client(of: server) {
            $0.identity.client = identity
            $0.reconnect.afterClose = .seconds(1_000)
            $0.reconnect.cap = .seconds(1_000)
          }
        }
        for client in clients { try await client.connect() }
        #expect(await server.counters().openConnections == 2)
        let peer = await server.peers()[0]
        if drains {
          await server.drain(peer, retryAfter: .seconds(1_000))
        } else {
          peer.close()
        }
        try await stage.until { await server.counters().clients == 0 }
        for client in clients { await client.close() }
      }
    }
  }

  @Test func `the clients of a principal get a push in the order of arrival`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { Authentication(Principal($0.clientName)) }
      })
      let heard = Tally<Int>()
      for number in 0..<12 {
        let client = try stage.client(of: server) { $0.name = "ann" }
        client.onPush(7) { _ in heard.add(number) }
        try await client.connect()
      }
      #expect(try await server.push(to: "ann", 7, [1]).queued == 12)
      await heard.reached(12)
      #expect(heard.elements == Array(0..<12))
    }
  }

  @Test func `without an identity each connection is a client`() async throws {
    try await Stage.simulate { stage, _ in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      var clients: [SimulatedClient] = []
      for _ in 0..<2 {
        clients.append(
          try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop))
        try await clients.last?.sayHello()
      }
      #expect(await server.peers().map(\.id) == [1, 2])
      #expect(await server.counters().clients == 2)
      withExtendedLifetime(clients) {}
    }
  }
}
