// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// How often SIGUSR1 has come to the handler of a test.
private let usersSignals = Atomic(0)

/// Servers that run until a signal comes. Signals belong to the process, so one test runs at a
/// time.
@Suite(.serialized) struct RunningTests {
  private struct NotReady: Error {}

  private static func server(of stage: Stage, _ lines: LogLines) throws -> LongLinkServer {
    var configuration = ServerConfiguration(listen: [.host("10.0.0.9", port: 7_000)])
    configuration.logger = lines.logger
    return try LongLinkServer(configuration, on: [stage.serverLoop])
  }

  @Test func `a cancelled run lets requests finish before it returns`() async throws {
    try await Stage.simulate { stage, _ in
      let (lines, started) = (LogLines(), Latch())
      let server = try Self.server(of: stage, lines)
      server.route(1) { request in
        try await request.clock.sleep(for: .seconds(3))
        return request.body
      }
      let running = stage.spawn {
        try await server.run(until: .sigterm) { started.open() }
      }
      await started.wait()
      let client = try stage.client(to: [server.endpoint])
      let reply = client.submit(1, [7])
      try await stage.until { await server.counters().requestsRunning == 1 }
      running.cancel()
      #expect(try await reply.value == [7])
      try await running.value
      #expect(lines.all("Stopped").map { $0.metadata["requestsAbandoned"] } == ["0"])
      #expect(lines.all("Ending at a signal").isEmpty)
      let late = try await failure { try await server.run(until: .sigterm) }
      #expect(late.code == .closed)
    }
  }

  @Test func `the bound of a cancelled run holds`() async throws {
    try await Stage.simulate { stage, simulation in
      let (lines, started) = (LogLines(), Latch())
      let server = try Self.server(of: stage, lines)
      server.routeBasics()
      let running = stage.spawn {
        try await server.run(until: .sigint, within: .seconds(4)) { started.open() }
      }
      await started.wait()
      let client = try stage.client(to: [server.endpoint])
      let hanging = client.submit(.hang, [7])
      try await stage.until { await server.counters().requestsRunning == 1 }
      let before = stage.serverLoop.clock.now
      running.cancel()
      try await running.value
      let time = before.duration(to: stage.serverLoop.clock.now)
      #expect(time >= .seconds(4) && time < .seconds(6), "\(time)")
      #expect(try await failure { try await hanging.value }.delivery == .sent)
    }
  }

  @Test func `a run takes a started server, and ends with it`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try Self.server(of: stage, LogLines())
      try await server.start()
      let started = Latch()
      let running = stage.spawn { try await server.run { started.open() } }
      await started.wait()
      await server.shutDown(within: .zero)
      try await running.value
    }
  }

  @Test func `a run whose function throws has shut its server down`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try Self.server(of: stage, LogLines())
      await #expect(throws: NotReady.self) {
        try await server.run(until: .sigterm) { throw NotReady() }
      }
      #expect(simulation.openListeners == [])
      await server.waitUntilShutDown()
    }
  }

  @Test func `a run throws why its server cannot start`() async throws {
    try await Stage.simulate { stage, _ in
      let first = try Self.server(of: stage, LogLines())
      try await first.start()
      let second = try Self.server(of: stage, LogLines())
      let error = try await failure { try await second.run(until: .sigterm) }
      #expect(error.code == .connectFailed && error.systemError == EADDRINUSE, "\(error)")
      await first.shutDown(within: .zero)
    }
  }

  /// Whether a signal has its default effect.
  private static func isDefault(_ number: Int32) -> Bool {
    var action = sigaction()
    _ = unsafe sigaction(number, nil, &action)
    #if canImport(Darwin)
    return unsafe action.__sigaction_u.__sa_handler == nil
    #else
    return unsafe action.__sigaction_handler.sa_handler == nil
    #endif
  }

  @Test func `one signal ends all servers that wait for it, and a second one is not caught`()
    async throws
  {
    // A shell lets its background jobs ignore SIGINT.
    let interrupt = Self.isDefault(SIGINT)
    #expect(Self.isDefault(SIGTERM))
    let lines = LogLines()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger = lines.logger
    let servers = try (0..<2).map { _ in try LongLinkServer(configuration) }
    let (isCaught, isFree) = (Tally<Bool>(), Tally<Bool>())
    servers[0].route(1) { request in
      // The server drains until this returns.
      try await request.clock.sleep(for: .milliseconds(1))
      while lines.all("Draining").isEmpty { try await request.clock.sleep(for: .milliseconds(1)) }
      isFree.add(Self.isDefault(SIGTERM) && Self.isDefault(SIGINT) == interrupt)
      return request.body
    }
    let other = Latch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await servers[1].run(until: .sigterm) { other.open() } }
      await other.wait()
      try await servers[0].run(until: .sigterm, .sigint) {
        isCaught.add(!Self.isDefault(SIGTERM) && !Self.isDefault(SIGINT))
        let client = try LongLinkClient(to: servers[0].endpoint)
        client.request(1, [5], on: .connectionLoop) { _ in Task { await client.close() } }
        while await servers[0].counters().requestsRunning == 0 { await Task.yield() }
        kill(getpid(), SIGTERM)
      }
      try await group.waitForAll()
    }
    #expect(isCaught.elements == [true] && isFree.elements == [true])
    #expect(
      lines.all("Ending at a signal").map { $0.metadata["signal"] } == ["SIGTERM", "SIGTERM"])
    #expect(lines.all("Stopped").count == 2)
    #expect(Self.isDefault(SIGTERM) && Self.isDefault(SIGINT) == interrupt)
  }

  @Test func `a run that is cancelled gives its signals back, and others keep theirs`() async throws
  {
    let (first, second) = (Latch(), Latch())
    let hangUp = Self.isDefault(SIGHUP)
    let servers = try (0..<2).map { _ in try LongLinkServer(listen: .host("127.0.0.1", port: 0)) }
    let short = Task { try await servers[0].run(until: .sighup, .sigterm) { first.open() } }
    let long = Task { try await servers[1].run(until: .sighup) { second.open() } }
    await first.wait()
    await second.wait()
    #expect(!Self.isDefault(SIGHUP) && !Self.isDefault(SIGTERM))
    short.cancel()
    try await short.value
    #expect(!Self.isDefault(SIGHUP) && Self.isDefault(SIGTERM))
    long.cancel()
    try await long.value
    #expect(Self.isDefault(SIGHUP) == hangUp)
  }

  /// The handler of a signal, as a number: 1 if the process ignores it.
  private static func handler(of number: Int32) -> Int {
    var action = sigaction()
    _ = unsafe sigaction(number, nil, &action)
    #if canImport(Darwin)
    return unsafe unsafeBitCast(action.__sigaction_u.__sa_handler, to: Int.self)
    #else
    return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    #endif
  }

  @Test func `a signal that the process ignores stays ignored`() async throws {
    let former = signal(SIGQUIT, SIG_IGN)
    defer { _ = signal(SIGQUIT, former) }
    let lines = LogLines()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger = lines.logger
    let server = try LongLinkServer(configuration)
    try await server.run(until: .sigquit, .sigterm) {
      #expect(Self.handler(of: SIGQUIT) == 1 && !Self.isDefault(SIGTERM))
      kill(getpid(), SIGQUIT)
      kill(getpid(), SIGTERM)
    }
    #expect(lines.all("Ending at a signal").map { $0.metadata["signal"] } == ["SIGTERM"])
    #expect(Self.handler(of: SIGQUIT) == 1 && Self.isDefault(SIGTERM))
  }

  @Test func `a signal is not lost whose wait is cancelled while it comes`() async throws {
    usersSignals.store(0, ordering: .relaxed)
    let former = signal(SIGUSR1) { _ in usersSignals.add(1, ordering: .relaxed) }
    defer { _ = signal(SIGUSR1, former) }
    let own = Self.handler(of: SIGUSR1)
    let (blocked, goOn) = (Latch(), Latch())
    _ = try ProcessSignals.shared.wait(for: [SIGUSR2]) { _ in
      blocked.open()
      while !goOn.isOpen { sched_yield() }
    }
    kill(getpid(), SIGUSR2)
    await blocked.wait()
    // The thread that would hear of it is busy.
    let wait = try ProcessSignals.shared.wait(for: [SIGUSR1]) { _ in Issue.record("it was heard") }
    #expect(Self.handler(of: SIGUSR1) != own)
    kill(getpid(), SIGUSR1)
    // It has come once it has its former effect again.
    while Self.handler(of: SIGUSR1) != own { await Task.yield() }
    ProcessSignals.shared.cancel(wait)
    let last = Latch()
    _ = try ProcessSignals.shared.wait(for: [SIGUSR2]) { _ in last.open() }
    kill(getpid(), SIGUSR2)
    #expect(usersSignals.load(ordering: .relaxed) == 0)
    goOn.open()
    await last.wait()
    // Any thread may take it.
    let limit = ContinuousClock.now + .seconds(10)
    while usersSignals.load(ordering: .relaxed) == 0, .now < limit { await Task.yield() }
    #expect(usersSignals.load(ordering: .relaxed) == 1)
  }
}
