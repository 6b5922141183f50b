// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@testable import LongLinkOnce
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// A simulated network with a server whose requests can run once, and scripted clients.
final class OnceStage: Sendable {
  struct Counts {
    var runs: [[UInt8]: Int] = [:]
    /// Those that wait to be let go.
    var waiting: [Gate<Void>] = []
    var cancelled = 0
    var attempts: [Int] = []
  }

  let simulation: Simulation
  let server: LongLinkServer
  let counts = Mutex(Counts())

  /// The routes.
  static let quick: MessageType = 1
  static let waits: MessageType = 2
  static let rejects: MessageType = 3
  static let large: MessageType = 4
  static let completes: MessageType = 5
  static let synchronous: MessageType = 6

  init(
    _ simulation: Simulation, store: any OnceStore, loops: [EventLoop]? = nil,
    retention: Duration = .seconds(300),
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    routes: (LongLinkServer) -> Void = { _ in }
  ) async throws {
    self.simulation = simulation
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.once = OnceConfiguration(store: store, retention: retention)
    configure(&configuration)
    server = try LongLinkServer(configuration, on: loops ?? [simulation.mainLoop])
    setRoutes()
    routes(server)
    try await server.start()
  }

  private func setRoutes() {
    server.route(Self.quick) { [self] request async throws -> [UInt8] in try await run(request) }
    server.route(Self.synchronous) { [self] request in [UInt8(ran(request))] }
    server.route(Self.waits) { [self] request async throws -> [UInt8] in
      let runs = ran(request)
      let gate = Gate<Void>()
      counts.withLock { $0.waiting.append(gate) }
      await withTaskCancellationHandler {
        await gate.value
      } onCancel: {
        gate.open(())
      }
      if Task.isCancelled { counts.withLock { $0.cancelled += 1 } }
      try Task.checkCancellation()
      return [UInt8(runs)]
    }
    server.route(Self.rejects) { [self] request async throws -> [UInt8] in
      _ = ran(request)
      throw Rejection(1_000, "no")
    }
    server.route(Self.large) { [self] request async throws -> [UInt8] in
      _ = ran(request)
      return [UInt8](repeating: 7, count: 70_000)
    }
    server.route(Self.completes) { [self] request async throws -> [UInt8] in
      let runs = ran(request)
      try await request.once?.complete(with: [UInt8(100 + runs)])
      if request.body == [1] { throw Rejection(1_001, "after that") }
      return [UInt8(runs)]
    }
  }

  private func run(_ request: InboundRequest) async throws -> [UInt8] { [UInt8(ran(request))] }

  private func ran(_ request: InboundRequest) -> Int {
    counts.withLock { counts in
      let key = request.once?.key ?? []
      counts.runs[key, default: 0] += 1
      counts.attempts.append(request.once?.attempt ?? 0)
      return counts.runs[key]!
    }
  }

  func runs(_ key: [UInt8]) -> Int { counts.withLock { $0.runs[key] ?? 0 } }

  /// Waits until so many handlers wait.
  func awaitWaiting(_ number: Int) async throws {
    while counts.withLock({ $0.waiting.count }) < number {
      try await simulation.sleep(for: .milliseconds(1))
    }
  }

  func letGo() {
    for gate in counts.withLock({ $0.waiting }) { gate.open(()) }
  }

  /// Connects a client with an identity, and lets it say hello.
  func client(_ number: UInt8 = 1, credential: String = "") async throws -> OnceCaller {
    try await OnceCaller.connect(
      to: server.addresses[0], on: simulation.mainLoop, number, credential: credential)
  }

  /// The scope of a client by its number.
  static func scope(of number: UInt8 = 1) -> OnceScope {
    OnceScope(
      clientHash: OnceHasher().hash([UInt8](repeating: number, count: 16)).bytes)
  }

  /// Runs a body in a simulation, with a store whose clock is the simulation's.
  static func run(
    _ body: @escaping @Sendable (Simulation, MemoryOnceStore) async throws -> Void
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      try await body(simulation, MemoryOnceStore(clock: simulation.clock))
    }
  }

  /// Runs a body with a stage over a store that is called at once, and over one that is waited for.
  static func runBoth(
    configure: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
    routes: @escaping @Sendable (LongLinkServer) -> Void = { _ in },
    body: @escaping @Sendable (OnceStage) async throws -> Void
  ) async throws {
    for isAsynchronous in [false, true] {
      try await run { simulation, memory in
        let store: any OnceStore =
          isAsynchronous ? ScriptedStore(memory, clock: simulation.clock) : memory
        let stage = try await OnceStage(simulation, store: store, configure, routes: routes)
        try await body(stage)
        await stage.server.shutDown(within: .zero)
      }
    }
  }
}

/// A client, and what it was told about its keys.
struct OnceCaller: Sendable {
  let client: SimulatedClient
  let welcome: GreetingFields

  /// Connects a client with an identity, and lets it say hello.
  static func connect(
    to address: SocketAddress, on loop: EventLoop, _ number: UInt8 = 1, credential: String = ""
  ) async throws -> OnceCaller {
    let client = try await SimulatedClient.connect(to: address, on: loop)
    let welcome = try await client.sayHello(
      .hello(
        features: [.metadata, .fragments, .streams, .once], credential: Array(credential.utf8),
        clientID: [UInt8](repeating: number, count: 16)))
    return OnceCaller(client: client, welcome: welcome)
  }

  func metadata(
    _ key: [UInt8], space: [UInt8]? = nil, time: UInt64? = nil, remaining: Duration? = nil
  ) -> WireMetadata {
    WireMetadata(
      remaining: remaining, idempotencyKey: key, keySpace: space ?? welcome.keySpace,
      keyTime: time ?? welcome.keyTime)
  }

  /// Sends a request that is to run once, and waits for its response.
  func ask(
    _ type: MessageType, _ key: [UInt8], _ body: [UInt8] = [], space: [UInt8]? = nil,
    time: UInt64? = nil, remaining: Duration? = nil
  ) async throws -> Answer {
    Answer(
      try await client.request(
        type, body,
        metadata: metadata(key, space: space, time: time, remaining: remaining)))
  }

  /// Sends one without waiting.
  func send(
    _ type: MessageType, _ key: [UInt8], serial: UInt32, _ body: [UInt8] = [],
    remaining: Duration? = nil
  ) {
    client.send(
      .request(type, serial: serial, body, metadata: metadata(key, remaining: remaining)))
  }

  func answer(to serial: UInt32) async throws -> Answer {
    Answer(try await client.waitForResponse(to: serial))
  }
}

/// What a test sees of a response.
struct Answer: Equatable {
  var code: ResponseCode
  var body: [UInt8]
  var isRefused = false
  var replayed = false

  init(_ code: ResponseCode, _ body: [UInt8], isRefused: Bool = false, replayed: Bool = false) {
    self.code = code
    self.body = body
    self.isRefused = isRefused
    self.replayed = replayed
  }

  /// A refusal of the framework has a text, which tests do not compare.
  init(_ message: ReceivedMessage) {
    code = message.code
    isRefused = message.isRefused
    replayed = message.metadata?.replayed ?? false
    let hasText = isRefused || [408, 410, 499].contains(message.code.rawValue)
    body = hasText ? [] : message.body
  }

  static func refused(_ code: ResponseCode) -> Answer { Answer(code, [], isRefused: true) }
}

/// A store that is slow, fails or is late when a test says so. Its records are those of another.
final class ScriptedStore: OnceStore {
  struct Script {
    var delay = Duration.milliseconds(3)
    /// The calls that throw, and have their effect before or not.
    var failingBegins = 0
    var failingCompletes = 0
    var failingAbandons = 0
    var failsAfterEffect = false
    var begins = 0
    var completes = 0
    var abandons = 0
    var name: [UInt8]?
    /// How far the time that it says is ahead, in ms.
    var ahead: Int64 = 0
    var statuses = 0
    var failingStatuses = 0
    var statusDelay = Duration.zero
  }

  private struct Failure: Error {}

  let memory: MemoryOnceStore
  let clock: EventLoopClock
  let script = Mutex(Script())

  init(_ memory: MemoryOnceStore, clock: EventLoopClock) {
    self.memory = memory
    self.clock = clock
  }

  func status() async throws -> OnceStoreStatus {
    var status = memory.statusNow
    let (name, fails, delay) = script.withLock { script in
      script.statuses += 1
      script.failingStatuses -= 1
      status.time += script.ahead
      return (script.name, script.failingStatuses >= 0, script.statusDelay)
    }
    if delay > .zero { try await clock.sleep(for: delay) }
    if fails { throw Failure() }
    if let name { status.name = name }
    return status
  }

  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding {
    let (delay, fails, isAfter, name) = script.withLock { script in
      script.begins += 1
      script.failingBegins -= 1
      return (script.delay, script.failingBegins >= 0, script.failsAfterEffect, script.name)
    }
    try await clock.sleep(for: delay)
    if fails, !isAfter { throw Failure() }
    var attempt = attempt
    if let name {
      if attempt.storeName != name { return .otherName }
      attempt.storeName = memory.statusNow.name
    }
    let finding = memory.beginNow(attempt)
    if fails { throw Failure() }
    return finding
  }

  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool {
    let (delay, fails, isAfter) = script.withLock { script in
      script.completes += 1
      script.failingCompletes -= 1
      return (script.delay, script.failingCompletes >= 0, script.failsAfterEffect)
    }
    try await clock.sleep(for: delay)
    if fails, !isAfter { throw Failure() }
    let isDone = memory.completeNow(token, with: answer)
    if fails { throw Failure() }
    return isDone
  }

  func abandon(_ token: OnceToken) async throws -> Bool {
    let (delay, fails) = script.withLock { script in
      script.abandons += 1
      script.failingAbandons -= 1
      return (script.delay, script.failingAbandons >= 0)
    }
    try await clock.sleep(for: delay)
    if fails { throw Failure() }
    return memory.abandonNow(token)
  }
}

/// A flag and a number that tests share with handlers.
final class Flag: Sendable {
  private let state = Mutex((isSet: false, number: 0))

  var isSet: Bool { state.withLock { $0.isSet } }
  var number: Int { state.withLock { $0.number } }
  func set(_ value: Bool) { state.withLock { $0.isSet = value } }
  func count() { state.withLock { $0.number += 1 } }
}
