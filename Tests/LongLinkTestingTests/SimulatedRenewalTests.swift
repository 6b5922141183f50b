// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Synchronization
import Testing

/// Credentials and identities, as scripted peers show and answer them.
@Suite struct SimulatedRenewalTests {
  private static let ann = [UInt8](repeating: 1, count: 16)
  private static let bob = [UInt8](repeating: 2, count: 16)
  private static let address = Endpoint.host("10.0.0.1", port: 7_000)

  // MARK: Servers

  /// Runs a body with a scripted server and a real client with a new credential each time.
  private func serve(
    _ handshake: ServerHandshake,
    _ body: @escaping @Sendable (Simulation, SimulatedServer, LongLinkClient) async throws -> Void
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.eventLoop(named: "server"))
      server.handshake = handshake
      let used = Counter()
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      configuration.identity.sendsCredentialUnencrypted = true
      configuration.identity.credential = { [UInt8(truncatingIfNeeded: used.next())] }
      configuration.identity.client = try ClientIdentity(bytes: Self.ann)
      let client = try LongLinkClient(configuration, on: simulation.mainLoop)
      try await client.connect()
      try await body(simulation, server, client)
      await client.close()
      await server.stop()
    }
  }

  @Test func `a server records who a client is, and each of its credentials`() async throws {
    try await serve(.welcome(credentialExpires: .seconds(10))) { simulation, server, client in
      #expect(try await server.waitForRenewal(count: 2).body == [3])
      #expect(server.renewals.map(\.connection) == [1, 1] && server.renewals[0].body == [2])
      #expect(server.record.hello(on: 1)?.credential == [1])
      server.goAway(to: 1)
      try await server.waitForConnections(2)
      try await server.wait { $0.connections(of: Self.ann) == [1, 2] }
      #expect(server.record.hello(on: 2)?.credential == [4])
      #expect(server.record.connections(of: Self.bob) == [] && server.record.hello(on: 3) == nil)
    }
  }

  @Test func `renewals are answered by the script: accepted, refused, late and never`() async throws
  {
    try await serve(.welcome(credentialExpires: .seconds(100))) { simulation, server, client in
      server.onRenewal([
        .renewed(credentialExpires: .seconds(10)),
        .renewed(.overloaded, reason: "later"),
        .delay(.seconds(2), then: .renewed(credentialExpires: .seconds(20))),
        .never,
      ])
      try await server.waitForRenewal(count: 4)
      let times = server.renewals.map { Double($0.time.nanoseconds) / 1e9 }
      #expect((75...91).contains(times[0]))
      // Within 90 % of ten seconds, and again within the time of that credential.
      #expect((7...9.5).contains(times[1] - times[0]) && times[2] - times[0] < 10)
      #expect((17...20.5).contains(times[3] - times[2]))
      // Nothing answers the last one, so that none follows it.
      try await simulation.sleep(for: .seconds(100))
      #expect(server.renewals.count == 4)
    }
  }

  @Test func `the feature is announced with a script, or withheld`() async throws {
    for (handshake, isScripted, hasFeature) in [
      (ServerHandshake.normal, false, false), (.normal, true, true),
      (.welcome(features: [.metadata], credentialExpires: .seconds(9)), true, false),
      (.welcome(credentialExpires: .seconds(9)), false, true),
    ] {
      try await TestEnvironment.simulated.runPair { server, client in
        server.handshake = handshake
        if isScripted { server.onRenewal { .renewed(reason: "\($0.body)") } }
        let welcome = try await client.sayHello(.hello(features: [.metadata, .renewal]))
        #expect(welcome.features.contains(.renewal) == hasFeature)
        guard isScripted else { return }
        #expect(try await client.renew([7]).reason == "[7]")
      }
    }
  }

  @Test func `a goaway asks one client to move, and leaves the others`() async throws {
    try await TestEnvironment.simulated.runPair { server, client in
      try await client.sayHello(.hello(clientID: Self.ann))
      let other = try await client.move(saying: .hello(clientID: Self.bob), leaves: false)
      server.goAway(code: .unauthenticated, to: 2)
      #expect(try await other.waitForFrame(.goaway).goAwayFields?.code == .unauthenticated)
      _ = try await client.request(9)
      #expect(client.record.frames(of: .goaway) == [])
      #expect(server.record.connections(of: Self.bob) == [2])
    }
  }

  // MARK: Clients

  /// Runs a body with a real server whose principals are named by the first byte of a credential;
  /// none of a byte of 9.
  private func connect(
    _ hello: WireFrame, setUp: @escaping @Sendable (LongLinkServer) -> Void = { _ in },
    _ body: @escaping @Sendable (Simulation, LongLinkServer, SimulatedClient) async throws -> Void
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [Self.address])
      configuration.logger.logLevel = .critical
      configuration.identity.authenticate = { request in
        guard let byte = request.credential?.first, byte != 9 else {
          throw Rejection(.unauthenticated, "nine")
        }
        return Authentication(Principal("p\(byte)"), validity: .seconds(100))
      }
      let server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
      server.route(1) { request in request.body }
      setUp(server)
      try await server.start()
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: simulation.mainLoop)
      if hello.helloFields != nil { try await client.sayHello(hello) }
      try await body(simulation, server, client)
      await server.shutDown(within: .zero)
    }
  }

  private static func hello(_ id: [UInt8], _ credential: UInt8) -> WireFrame {
    .hello(features: [.metadata, .renewal], credential: [credential], clientID: id)
  }

  @Test func `a client that moves is the same one, and gets pushes where it is`() async throws {
    let gone = Counter()
    try await connect(Self.hello(Self.ann, 1)) {
      $0.onDisconnect { _ in _ = gone.next() }
    } _: { simulation, server, client in
      let next = try await client.move(leaves: false)
      #expect(await server.peers().map(\.connectionID) == [2])
      #expect(await server.counters().openConnections == 2)
      try await server.broadcast(5, [UInt8]([1]))
      try await next.wait { $0.pushes.count == 1 }
      client.close()
      try await simulation.sleep(for: .seconds(1))
      #expect(client.pushes.isEmpty && gone.count == 0)
      let last = try await next.move()
      try await next.waitForEnd()
      #expect(try await last.request(1, [3]).body == [3])
      #expect(await server.peers().map(\.connectionID) == [3] && gone.count == 0)
    }
  }

  @Test func `another client's identity does not help without its principal`() async throws {
    try await connect(Self.hello(Self.ann, 1)) { simulation, server, client in
      let thief = try await client.move(saying: Self.hello(Self.ann, 2), leaves: false)
      #expect(Set(await server.peers().map(\.id)).count == 2)
      try await server.push(to: "p1", 5, [UInt8]([1]))
      try await client.wait { $0.pushes.count == 1 }
      #expect(thief.pushes.isEmpty)
    }
  }

  @Test func `a renewal tells its answer, and what it refuses`() async throws {
    try await connect(Self.hello(Self.ann, 1)) { simulation, server, client in
      try await simulation.sleep(for: .seconds(2))
      let accepted = try await client.renew([1, 1])
      #expect(accepted.code == .ok && accepted.credentialExpires == .seconds(100))
      // Too often, as nobody, and as another one.
      #expect(try await client.renew([1]).code == .overloaded)
      try await simulation.sleep(for: .seconds(2))
      let refused = try await client.renew([9])
      #expect(refused.code == .unauthenticated && refused.reason == "nine")
      try await simulation.sleep(for: .seconds(2))
      #expect(try await client.renew([2]).code == .forbidden)
      #expect(
        client.record.renewals.map(\.code) == [.ok, .overloaded, .unauthenticated, .forbidden])
      #expect(try await client.request(1, [3]).body == [3])
    }
  }

  @Test func `one before the hello, and two at once, end the connection`() async throws {
    try await connect(.ping()) { simulation, server, client in
      await #expect(throws: (any Error).self) { try await client.renew([1]) }
      let next = try await client.move(saying: Self.hello(Self.ann, 1))
      next.send([.renewal([1]), .renewal([1])])
      try await next.waitForEnd()
      #expect(next.record.frames(of: .goaway).last?.goAwayFields?.code == .malformed)
    }
  }
}

/// A count that closures share.
private final class Counter: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .relaxed) }

  func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}
