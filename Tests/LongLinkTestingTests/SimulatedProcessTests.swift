// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Processes that are started, killed and started again.
@Suite struct SimulatedProcessTests {
  private final class Disk: Sendable {
    let writes = Mutex(0)
  }

  @Test func `each start runs the body on a fresh loop`() async throws {
    let simulation = Simulation()
    let runs = Mutex<[(Int, Bool)]>([])
    let process = simulation.process(named: "p") { run in
      runs.withLock { $0.append((run.number, run.loop.isCurrent)) }
    }
    try await simulation.run {
      #expect(!process.isRunning)
      let first = try await process.start()
      let second = try await process.start()
      #expect(first.loop !== second.loop)
      #expect([first.isAlive, second.isAlive] == [false, true])
      #expect(process.current === second)
      #expect(simulation.machine(of: first.loop) == process.machine)
      #expect(simulation.machine(of: second.loop) == process.machine)
    }
    let seen = runs.withLock { $0 }
    #expect(seen.map(\.0) == [1, 2])
    #expect(seen.map(\.1) == [true, true])
  }

  @Test func `a state lives on over a crash, until a start loses it`() async throws {
    let simulation = Simulation()
    let seen = Mutex<[Int]>([])
    let process = simulation.process(named: "p", state: { Disk() }) { _, disk in
      let count = disk.writes.withLock { count in
        count += 1
        return count
      }
      seen.withLock { $0.append(count) }
    }
    try await simulation.run {
      try await process.start()
      process.crash(.machine)
      try await process.start()
      process.crash()
      try await process.start(losingState: true)
    }
    #expect(seen.withLock { $0 } == [1, 2, 1])
  }

  @Test func `a crash ends everything that the process waits for`() async throws {
    let simulation = Simulation()
    let ended = Mutex<[String]>([])
    let process = simulation.process(named: "p") { run in
      run.spawn {
        await #expect(throws: CancellationError.self) {
          try await run.loop.sleep(for: .seconds(1_000_000))
        }
        ended.withLock { $0.append("task") }
      }
      run.atEnd { ended.withLock { $0.append("first") } }
      run.atEnd {
        #expect(!run.isAlive)
        ended.withLock { $0.append("second") }
      }
    }
    try await simulation.run {
      let run = try await process.start()
      try await simulation.sleep(for: .seconds(1))
      // A frozen process can be killed.
      process.machine.pause()
      process.crash()
      #expect(process.machine.isPaused == false)
      try await simulation.sleep(for: .seconds(1))
      #expect(run.isOver)
    }
    #expect(ended.withLock { $0 }.sorted() == ["first", "second", "task"])
    #expect(ended.withLock { $0 }.filter { $0 != "task" } == ["second", "first"])
    #expect(simulation.pendingTimers == [])
  }

  @Test func `a loop that is made after the crash is not frozen with the machine`() async throws {
    let simulation = Simulation()
    let process = simulation.process(named: "p") { run in
      run.atEnd {
        let loop = run.eventLoop(named: "late")
        try? await loop.sleep(for: .seconds(5))
      }
    }
    try await simulation.run {
      let run = try await process.start()
      process.crash()
      try await simulation.sleep(for: .seconds(1))
      let isOver = run.isOver
      #expect(!isOver)
      process.machine.pause()
      try await simulation.sleep(for: .seconds(10))
      let isOverNow = run.isOver
      #expect(isOverNow)
    }
    #expect(simulation.pendingTimers == [])
  }

  @Test func `a crash during a start ends it, and releases what it makes`()
    async throws
  {
    let simulation = Simulation()
    let letGo = Mutex(false)
    let process = simulation.process(named: "p") { run in
      // Heeds no cancellation.
      try? await run.loop.sleep(for: .seconds(1))
      await withCheckedContinuation { continuation in
        simulation.spawn {
          try? await simulation.sleep(for: .seconds(5))
          continuation.resume()
        }
      }
      #expect(!run.isAlive)
      run.atEnd { letGo.withLock { $0 = true } }
    }
    try await simulation.run {
      let start = simulation.spawn { try await process.start() }
      try await simulation.sleep(for: .milliseconds(500))
      let run = try #require(process.current)
      process.crash()
      try await simulation.sleep(for: .seconds(1))
      #expect(run.isOver)
      #expect(try await start.value === run)
      try await simulation.sleep(for: .seconds(1))
      #expect(!process.isRunning)
    }
    #expect(letGo.withLock { $0 })
  }

  @Test func `a body that fails leaves no process`() async throws {
    struct Failure: Error {}
    let simulation = Simulation()
    let process = simulation.process(named: "p") { _ in throw Failure() }
    try await simulation.run {
      await #expect(throws: Failure.self) { try await process.start() }
      #expect(!process.isRunning)
    }
  }

  // MARK: Real servers and clients, and scripted ones

  @Test func `a server that loses its machine is found dead, and comes back`() async throws {
    let simulation = Simulation(seed: 7)
    let address = Endpoint.host("10.0.0.1", port: 7_000)
    let server = simulation.process(named: "server") { run in
      let server = try LongLinkServer(ReplayTests.configuration(listen: [address]), on: [run.loop])
      server.route(1) { request in request.body }
      run.atEnd { await server.shutDown(within: .zero) }
      try await server.start()
    }
    try await simulation.run {
      try await server.start()
      let client = try LongLinkClient(
        ReplayTests.clientConfiguration([address]), on: simulation.mainLoop)
      #expect(try await client.request(1, [1]) == [1])

      server.crash(.machine)
      let crashed = simulation.now
      simulation.spawn {
        try await simulation.sleep(for: .seconds(30))
        try await server.start()
      }
      let options = RequestOptions(timeout: .seconds(600))
      var reply: [UInt8]?
      while reply == nil { reply = try? await client.request(1, [2], options: options) }
      #expect(reply == [2])
      #expect(simulation.now > crashed.advanced(by: .seconds(30)))
      #expect(server.current?.number == 2)
      await client.close()
      server.crash()
    }
    #expect(simulation.openStreams == [])
    #expect(simulation.openListeners == [])
  }

  /// A reference that keeps nothing alive.
  private final class Leash: Sendable {
    private struct Reference: @unchecked Sendable {
      weak var object: AnyObject?
    }
    private let reference = Mutex(Reference())

    var isHeld: Bool { reference.withLock { $0.object != nil } }

    func put<Object: AnyObject & Sendable>(on object: Object) {
      reference.withLock { $0.object = object }
    }
  }

  @Test(arguments: [SimulatedProcess.Crash.process, .machine])
  func `nothing of a crashed process is left`(crash: SimulatedProcess.Crash) async throws {
    let simulation = Simulation()
    let leashes = (server: Leash(), client: Leash(), run: Leash())
    let ended = Mutex(0)
    let address = Endpoint.host("10.0.0.1", port: 7_000)
    let server = simulation.process(named: "server") { run in
      let server = try LongLinkServer(ReplayTests.configuration(listen: [address]), on: [run.loop])
      server.route(1) { request in
        defer { ended.withLock { $0 += 1 } }
        try await run.loop.sleep(for: .seconds(1_000_000))
        return request.body
      }
      run.atEnd { await server.shutDown(within: .zero) }
      try await server.start()
      leashes.server.put(on: server)
      leashes.run.put(on: run)
    }
    let client = simulation.process(named: "client") { run in
      let client = try LongLinkClient(ReplayTests.clientConfiguration([address]), on: run.loop)
      run.atEnd { await client.close() }
      leashes.client.put(on: client)
      for _ in 0..<5 {
        run.spawn {
          defer { ended.withLock { $0 += 1 } }
          _ = try await client.request(
            1, [1], options: RequestOptions(timeout: .seconds(1_000_000)))
        }
      }
    }
    try await simulation.run {
      try await server.start()
      try await client.start()
      try await simulation.sleep(for: .seconds(10))
      #expect(leashes.server.isHeld && leashes.client.isHeld)
      server.crash(crash)
      client.crash(crash)
      try await simulation.sleep(for: .seconds(10))
    }
    #expect(ended.withLock { $0 } == 10)
    #expect(simulation.openStreams == [])
    #expect(simulation.openListeners == [])
    #expect(simulation.pendingTimers == [])
    #expect(!leashes.server.isHeld && !leashes.client.isHeld && !leashes.run.isHeld)
  }

  @Test func `a scripted server is a process like any other`() async throws {
    let simulation = Simulation()
    let address = SocketAddress.ipv4(10, 0, 0, 1, port: 7_000)
    let process = simulation.process(named: "server") { run in
      let server = try await SimulatedServer.start(on: run.loop, at: address)
      server.on(1, .reply([UInt8(run.number)]))
      run.atEnd { await server.stop() }
    }
    try await simulation.run {
      for number in 1...2 {
        try await process.start()
        let client = try await SimulatedClient.connect(to: address, on: simulation.mainLoop)
        client.send(.request(1, serial: 50))
        let reply = try await client.waitForFrame(.response)
        #expect(reply.body == [UInt8(number)])
        process.crash()
        #expect(try await client.waitForEnd().reason == .endedByPeer)
      }
    }
    #expect(simulation.openStreams == [])
  }

  @Test func `simulations run beside each other on threads of their own`() async throws {
    let reports = try await withThrowingTaskGroup(of: (UInt64, String).self) { group in
      for seed in [1, 2, 1, 2] as [UInt64] {
        group.addTask { (seed, try await ReplayTests.run(seed: seed).report) }
      }
      var reports: [UInt64: Set<String>] = [:]
      for try await (seed, report) in group { reports[seed, default: []].insert(report) }
      return reports
    }
    #expect(reports[1]?.count == 1)
    #expect(reports[2]?.count == 1)
    #expect(reports[1] != reports[2])
  }
}
