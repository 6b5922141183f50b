// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Synchronization

/// The options of a soak.
struct SoakOptions: Sendable {
  var total: Duration
  var clients: Int
  var clientProcesses: Int
  var servers: Int
  var rate: Double
  var seed: UInt64

  /// The time before the first fault, in which permanent memory is allocated.
  var warmUp: Duration { min(.seconds(30), total * 3 / 20) }
  /// The time after the last fault.
  var settling: Duration { min(.seconds(20), total / 5) }
}

/// Runs servers and clients in separate processes, injects faults, and collects the results.
actor Soak {
  let options: SoakOptions
  let folder: URL
  private let loop: EventLoop
  private var servers: [SoakServerProcess] = []
  private var clients: [SoakClientsProcess] = []
  private var relays: [LoopBound<Relay>] = []
  private var result = SoakResult()
  private let start = ContinuousClock.now

  init(_ options: SoakOptions) throws {
    self.options = options
    loop = try EventLoop(name: "relays")
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-soak-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  /// Runs the whole soak. However it ends, no process is left. The caller removes the ledgers,
  /// unless something is wrong.
  func run() async throws -> SoakResult {
    do {
      try await runAll()
    } catch {
      await abandon()
      throw error
    }
    await abandon()
    result.verdict = try SoakVerdict(ledgers.flatMap(SoakLedger.records))
    return result
  }

  private var ledgers: [String] { servers.map(\.ledger) + clients.map(\.ledger) }

  private func abandon() async {
    for server in servers { await server.abandon() }
    for clients in clients { clients.child.send(SIGKILL) }
    let relays = relays
    await loop.run { for relay in relays { relay.value.close() } }
    self.relays = []
    await Task.detached { [loop] in loop.shutDown() }.value
  }

  private func runAll() async throws {
    try await open()
    try await reportStart()
    try await reach("all clients are connected", within: .seconds(60)) {
      allConnected(since: start)
    }
    result.descriptors.first = await descriptors()
    let plan = SoakPlan(
      seed: options.seed, lasting: options.total - options.warmUp - options.settling,
      servers: options.servers, clientProcesses: options.clientProcesses)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.watch() }
      group.addTask { try await self.hurt(plan) }
      // Either the faults are over, or a process has ended unexpectedly.
      try await group.next()
      group.cancelAll()
    }
    try await settle()
    try await close()
  }

  private func open() async throws {
    for index in 0..<options.servers {
      let server = SoakServerProcess(
        index: index, ledger: folder.appendingPathComponent("server-\(index)").path)
      servers.append(server)
      try await server.open()
      let port = await server.port
      let loop = loop
      let relay = try await loop.run {
        Result { LoopBound(try Relay(to: .ipv4(127, 0, 0, 1, port: port), on: loop), on: loop) }
      }.get()
      relays.append(relay)
    }
    let lists = try await serverLists()
    for index in 0..<options.clientProcesses {
      let first = options.clients * index / options.clientProcesses
      let end = options.clients * (index + 1) / options.clientProcesses
      var arguments = [
        "--first", "\(first)", "--clients", "\(end - first)", "--rate", "\(options.rate)",
        "--seed", "\(options.seed)",
      ]
      for list in lists { arguments += ["--servers", list] }
      clients.append(
        try SoakClientsProcess(
          index: index, ledger: folder.appendingPathComponent("clients-\(index)").path,
          arguments: arguments))
    }
  }

  private func reportStart() async throws {
    var ports: [String] = []
    for server in servers { ports.append("\(await server.port)") }
    try Output.line(
      "servers on ports \(ports.joined(separator: ", ")); \(options.clients) clients in "
        + "\(options.clientProcesses) processes; ledgers in \(folder.path)")
  }

  /// The server lists that clients get in turn: each server is first in one of them directly, and
  /// in another through its relay. In a third it is alone, so that clients come back to its
  /// records.
  private func serverLists() async throws -> [String] {
    var direct: [UInt16] = []
    for server in servers { direct.append(await server.port) }
    let relays = relays
    let relayed = await loop.run { relays.compactMap(\.value.port) }
    return servers.indices.flatMap { first in
      [direct, relayed].map { ports in
        (ports[first...] + ports[..<first]).map { "127.0.0.1:\($0)" }.joined(separator: ",")
      } + ["127.0.0.1:\(relayed[first])"]
    }
  }
}

// MARK: - While it runs

extension Soak {
  private var report: SoakReport {
    clients.reduce(into: SoakReport()) { $0 += $1.report }
  }

  private func allConnected(since time: ContinuousClock.Instant) -> Bool {
    clients.reduce(0) { $0 + $1.connected(since: time) } == options.clients
  }

  /// Samples the memory in use, and prints the progress.
  private func watch() async throws {
    let clock = ContinuousClock()
    let warm = clock.now + options.warmUp
    let pause = min(.seconds(10), options.total / 6)
    var nextLine = clock.now + pause
    while true {
      try await Task.sleep(for: .seconds(1))
      for server in servers { try await server.check() }
      for clients in clients { try clients.check() }
      if clock.now >= warm { await sample() }
      if clock.now >= nextLine {
        nextLine += pause
        try Output.line(progress)
      }
    }
  }

  private func sample() async {
    if let process = await servers[0].process, let usage = ProcessUsage(of: process) {
      result.usage["server 0", default: UsageSeries()].append(resident: usage.resident)
    }
    for clients in clients {
      if let usage = ProcessUsage(of: clients.child.number) {
        result.usage["clients \(clients.index)", default: UsageSeries()].append(
          resident: usage.resident)
      }
    }
  }

  private var progress: String {
    let seconds = Int((ContinuousClock.now - start) / .seconds(1))
    let report = report
    return "\(seconds) s: \(report.connected) of \(options.clients) connected, "
      + "\(report.ended) requests ended, \(report.open) open, "
      + "\(result.faults.values.reduce(0, +)) faults, \(report.connects) connects"
  }

  private func hurt(_ plan: SoakPlan) async throws {
    try await Task.sleep(for: options.warmUp)
    let begin = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for fault in plan.faults {
        group.addTask {
          try await Task.sleep(until: begin + fault.start)
          try await self.perform(fault)
        }
      }
      try await group.waitForAll()
    }
  }

  private func perform(_ fault: SoakPlan.Fault) async throws {
    switch fault.kind {
    case .kill, .drain:
      let server = servers[fault.target]
      let begin = ContinuousClock.now
      guard try await server.end(with: fault.kind == .kill ? SIGKILL : SIGTERM) else { return }
      if fault.kind == .drain { result.shutdowns.append(ContinuousClock.now - begin) }
      count(fault)
      try await Task.sleep(for: fault.length)
      try await server.start()
    case .freeze:
      let server = servers[fault.target]
      guard await server.send(SIGSTOP) else { return }
      count(fault)
      try await Task.sleep(for: fault.length)
      _ = await server.send(SIGCONT)
    case .pause:
      let child = clients[fault.target].child
      child.send(SIGSTOP)
      count(fault)
      try await Task.sleep(for: fault.length)
      child.send(SIGCONT)
    case .partition:
      let relay = relays[fault.target]
      await loop.run { relay.value.hold() }
      count(fault)
      try await Task.sleep(for: fault.length)
      await loop.run { relay.value.release() }
    case .cut:
      let relay = relays[fault.target]
      await loop.run { relay.value.cut() }
      count(fault)
    }
  }

  private func count(_ fault: SoakPlan.Fault) {
    result.faults[fault.kind, default: 0] += 1
  }
}

// MARK: - At the end

extension Soak {
  /// Waits until all clients are connected again, still under load.
  private func settle() async throws {
    let begin = ContinuousClock.now
    await note("all clients are connected again", within: SoakTiming.recovery) {
      allConnected(since: begin)
    }
    result.recovery = ContinuousClock.now - begin
    let rest = options.settling - result.recovery
    if rest > .zero { try await Task.sleep(for: rest) }
    // Connections that were replaced, or that a late fault has hit, may linger for a moment.
    let allowed = SoakResult.mostDescriptors(after: result.descriptors.first)
    let limit = ContinuousClock.now + SoakTiming.recovery
    repeat {
      result.descriptors.last = await descriptors()
      if result.descriptors.last <= allowed { break }
      try await Task.sleep(for: .milliseconds(250))
    } while ContinuousClock.now < limit
  }

  private func close() async throws {
    for clients in clients { try clients.child.write(line: "stop") }
    let limit = SoakTiming.deadline + .seconds(20)
    for clients in clients {
      await note("clients \(clients.index) end", within: limit) { !clients.child.isRunning }
      guard !clients.child.isRunning else { continue }
      let code = await clients.child.exitCode()
      if code != 0 {
        let end = code.map { "code \($0)" } ?? "a signal"
        result.problems.append("clients \(clients.index) ended with \(end)")
      }
    }
    for server in servers { _ = try await server.end(with: SIGTERM) }
    result.report = report
    result.duration = ContinuousClock.now - start
  }

  /// The number of open descriptors in all processes together.
  private func descriptors() async -> Int {
    var processes = clients.map(\.child.number)
    for server in servers {
      if let process = await server.process { processes.append(process) }
    }
    return processes.reduce(0) { $0 + (ProcessUsage(of: $1)?.descriptors ?? 0) }
  }

  /// Waits for a condition; if it does not come true, notes a problem and continues.
  private func note(_ what: String, within bound: Duration, _ condition: () -> Bool) async {
    do {
      try await reach(what, within: bound, condition)
    } catch {
      result.problems.append("\(error)")
    }
  }

  /// Waits for a condition; throws if it does not come true.
  private func reach(_ what: String, within bound: Duration, _ condition: () -> Bool) async throws {
    let limit = ContinuousClock.now + bound
    while !condition() {
      guard ContinuousClock.now < limit else {
        throw ChildFailure("not within \(bound.inSeconds): \(what)")
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
