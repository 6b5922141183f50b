// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// Loops of one environment, and what tests need to put a client and a server on them.
final class Stage: Sendable {
  let environment: TestEnvironment
  /// The simulated world; nil over the kernel.
  let simulation: Simulation?
  let clientLoop: EventLoop
  let serverLoop: EventLoop
  private let clients = Mutex<[LongLinkClient]>([])
  private let servers = Mutex<[LongLinkServer]>([])
  private let gateways = Mutex<[SimulatedGateway]>([])

  private init(
    _ environment: TestEnvironment,
    _ simulation: Simulation?,
    _ client: EventLoop,
    _ server: EventLoop
  ) {
    self.environment = environment
    self.simulation = simulation
    clientLoop = client
    serverLoop = server
  }

  /// Runs a body in a world; afterwards everything is closed, and nothing may be left.
  static func run(
    _ environment: TestEnvironment,
    seed: UInt64 = 1,
    _ body: @escaping @Sendable (Stage) async throws -> Void
  ) async throws {
    guard !environment.isSimulated else {
      return try await run(in: Simulation(seed: seed), body)
    }
    let loops = try (EventLoop(name: "client"), EventLoop(name: "server"))
    let stage = Stage(environment, nil, loops.0, loops.1)
    let result = await Task { try await stage.run(body) }.result
    loops.0.shutDown()
    loops.1.shutDown()
    try result.get()
  }

  /// Runs a body in a simulation; afterwards everything is closed, and nothing may be left.
  static func run(
    in simulation: Simulation,
    _ body: @escaping @Sendable (Stage) async throws -> Void
  ) async throws {
    let server = simulation.eventLoop(named: "server")
    let stage = Stage(.simulated, simulation, simulation.mainLoop, server)
    try await simulation.run {
      try await stage.run(body)
      let seed = "seed \(simulation.seed)"
      #expect(simulation.openStreams == [], "\(seed)")
      #expect(simulation.openListeners == [], "\(seed)")
      #expect(simulation.pendingTimers == [], "\(seed)")
      #expect(simulation.escapes == [], "\(seed)")
    }
  }

  /// Runs a body on the simulation, whose time is virtual.
  static func simulate(
    seed: UInt64 = 1,
    _ body: @escaping @Sendable (Stage, Simulation) async throws -> Void
  ) async throws {
    try await run(.simulated, seed: seed) { stage in try await body(stage, stage.simulation!) }
  }

  /// Runs a body with a server and a client of it, which has a gateway's short links too, or these
  /// alone, if the environment says so.
  static func pair(
    in environment: TestEnvironment = .simulated,
    client: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    server: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await serving(
      in: environment, { $0.routeStreams() }, client: client, server: server, body)
  }

  /// The same with handlers of the test's own.
  static func serving(
    in environment: TestEnvironment = .simulated,
    _ setUp: @Sendable @escaping (LongLinkServer) -> Void,
    client configureClient: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    server configureServer: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await run(environment) { stage in
      let server = try await stage.serve(setUp: setUp, configure: configureServer)
      if environment.ways != nil { _ = try await stage.gateway(for: server) }
      let client = try stage.client(of: server) {
        if let ways = environment.ways { $0.ways = ways }
        if environment == .bothWays { $0.timeouts.connect = .seconds(3) }
        configureClient(&$0)
      }
      try await body(stage, server, client)
    }
  }

  private func run(_ body: (Stage) async throws -> Void) async throws {
    do {
      try await body(self)
    } catch {
      await closeAll()
      throw error
    }
    await closeAll()
  }

  private func closeAll() async {
    for client in clients.withLock({ $0 }) {
      await client.close()
      let counters = await client.counters()
      #expect(counters.requestsOpen == 0)
      #expect(counters.requests.ended == counters.requests.submitted, "\(counters.requests)")
      #expect(client.state == .closed)
    }
    for gateway in gateways.withLock({ $0 }) { await gateway.close() }
    for server in servers.withLock({ $0 }) { await server.shutDown(within: .zero) }
  }

  // MARK: Clients and servers

  /// A server that listens, on a free port or path.
  func serve(
    on loops: [EventLoop]? = nil,
    at endpoint: Endpoint? = nil,
    setUp: (LongLinkServer) -> Void = { $0.routeStreams() },
    configure: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkServer {
    let listen: Endpoint =
      switch (endpoint, environment) {
      case (let endpoint?, _): endpoint
      case (nil, .simulated), (nil, .short), (nil, .bothWays): .host("10.0.0.1", port: 0)
      case (nil, .loopback): .host("127.0.0.1", port: 0)
      case (nil, .unix): .unix(path: "/tmp/longlink-\(UInt64.random(in: 0 ... .max))")
      }
    var configuration = ServerConfiguration(listen: [listen])
    configuration.logger.logLevel = .critical
    if simulation == nil { configuration.timeouts.firstFrame = .seconds(100) }
    configure(&configuration)
    let server = try LongLinkServer(configuration, on: loops ?? [serverLoop])
    setUp(server)
    try await server.start()
    servers.withLock { $0.append(server) }
    return server
  }

  /// A server whose echo adds its name, and whose requests of type 2 wait for a latch.
  func serve(
    named name: UInt8, until goOn: Latch = Latch(),
    configure: (inout ServerConfiguration) -> Void = { $0.drain.spread = .zero }
  ) async throws -> LongLinkServer {
    try await serve(
      setUp: { server in
        server.route(.echo) { request in request.body + [name] }
        server.route(.hang) { request in
          await goOn.wait()
          return request.body + [name]
        }
      },
      configure: configure)
  }

  /// A client whose server, which is named 1, works on its request until the latch opens.
  func busy() async throws -> (
    server: LongLinkServer, client: LongLinkClient, slow: RequestTask<[UInt8]>, goOn: Latch
  ) {
    let goOn = Latch()
    let server = try await serve(named: 1, until: goOn)
    let client = try client(of: server)
    return (server, client, try await hang(client, on: server, [0]), goOn)
  }

  /// Sends a request that is not answered by itself, and waits until the server works on it.
  func hang(
    _ client: LongLinkClient, on server: LongLinkServer, _ body: [UInt8] = []
  ) async throws -> RequestTask<[UInt8]> {
    let task = client.submit(.hang, body, options: .patient)
    try await running(1, on: server)
    return task
  }

  /// Waits until a server works on so many requests.
  func running(_ count: Int, on server: LongLinkServer) async throws {
    try await until { await server.counters().requestsRunning == count }
  }

  /// A gateway of a server for short links, in a simulation.
  func gateway(
    for server: LongLinkServer, at address: SocketAddress = Way.gatewayAddress
  ) async throws -> SimulatedGateway {
    let gateway = try await SimulatedGateway.start(at: address, for: server, on: serverLoop)
    gateways.withLock { $0.append(gateway) }
    return gateway
  }

  /// A client of servers, not yet connected.
  func client(
    of servers: LongLinkServer...,
    on loop: EventLoop? = nil,
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> LongLinkClient {
    try client(to: servers.flatMap(\.endpoints), on: loop, configure: configure)
  }

  /// A client of endpoints, not yet connected.
  func client(
    to endpoints: [Endpoint],
    on loop: EventLoop? = nil,
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: endpoints)
    configuration.logger.logLevel = .critical
    // Real time passes as fast as the machine is slow: it is not the subject.
    if simulation == nil {
      configuration.timeouts.request = .seconds(3_600)
      configuration.timeouts.connect = .seconds(100)
    }
    configure(&configuration)
    let client = try LongLinkClient(configuration, on: loop ?? clientLoop)
    clients.withLock { $0.append(client) }
    return client
  }

  /// Starts a task that stays in this environment.
  @discardableResult
  func spawn<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) -> Task<Value, any Error> {
    if let simulation { simulation.spawn(body) } else { Task { try await body() } }
  }

  /// Waits until a condition holds, which the work of the loops brings about.
  func until(
    _ condition: () async -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let limit = clientLoop.clock.now.advanced(by: .seconds(120))
    var pause = Duration.milliseconds(1)
    while await !condition() {
      guard clientLoop.clock.now < limit else {
        Issue.record("the condition does not come about", sourceLocation: sourceLocation)
        throw CancellationError()
      }
      try await clientLoop.sleep(for: pause)
      pause = min(pause * 5 / 4, .milliseconds(200))
    }
  }
}

extension LongLinkServer {
  /// 1 echoes, 2 never answers, 3 fails.
  func routeBasics() {
    route(.echo) { request in request.body }
    route(.hang) { request in
      try await request.clock.sleep(for: .seconds(1_000_000))
      return request.body
    }
    route(.fail) { _ in throw Rejection(1_234, body: [9, 8, 7]) }
  }
}

extension MessageType {
  static let echo: MessageType = 1
  static let hang: MessageType = 2
  static let fail: MessageType = 3
}

extension RequestOptions {
  static let patient = RequestOptions(timeout: .seconds(3_600))
}

extension RequestCounters {
  static var zero: RequestCounters { RequestCounters() }

  /// Requests that have ended, whichever way.
  var ended: UInt64 { succeeded + rejected + cancelled + expired + lost + failedLocally }
}

/// What a request that has to fail fails with.
func failure<Value>(
  _ body: () async throws -> Value,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws -> LongLinkError {
  do {
    _ = try await body()
  } catch let error as LongLinkError {
    return error
  }
  Issue.record("it should have failed", sourceLocation: sourceLocation)
  throw CancellationError()
}
