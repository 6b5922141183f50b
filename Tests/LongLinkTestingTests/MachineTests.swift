// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport
import Synchronization
import Testing

@testable import LongLinkTesting

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Machines that are cut off, frozen, ahead of time, and dead.
@Suite struct MachineTests {
  /// A loop on another machine with a listener, and a stream of the main loop to it.
  private struct Pair {
    let client: TransportProbe
    let listener: ListenerProbe
    let serverLoop: EventLoop
    let address: SocketAddress

    var server: TransportProbe { listener.accepted[0] }
  }

  /// A value that is touched on the simulation's thread alone.
  private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
  }

  private func on<T>(_ loop: EventLoop, _ body: @escaping () throws -> T) async throws -> T {
    let body = Unchecked(value: body)
    let task = Task(executorPreference: loop) { Unchecked(value: try body.value()) }
    return try await task.value.value
  }

  private func connect(
    _ simulation: Simulation,
    to loop: EventLoop,
    at address: SocketAddress = Simulation.freePort
  ) async throws -> Pair {
    let listener = try await on(loop) { try ListenerProbe(address, on: loop) }
    let stream = try simulation.mainLoop.driver.connect(
      to: listener.address,
      options: SocketOptions()
    )
    let client = TransportProbe(stream, interest: .write)
    try await simulation.sleep(for: .milliseconds(50))
    #expect(try stream.finishConnecting())
    client.forgetReadiness()
    return Pair(client: client, listener: listener, serverLoop: loop, address: listener.address)
  }

  /// Begins to connect from the main loop; the probe is told of the end.
  private func attempt(_ simulation: Simulation, to address: SocketAddress) throws -> TransportProbe
  {
    let stream = try simulation.mainLoop.driver.connect(to: address, options: SocketOptions())
    return TransportProbe(stream, interest: .write)
  }

  private func outcome(_ probe: TransportProbe) -> CInt? {
    guard !probe.readiness.isEmpty else { return nil }
    do throws(SocketError) {
      return try probe.stream.finishConnecting() ? 0 : nil
    } catch {
      return error.errno
    }
  }

  @Test func `a partition silences links and connects until it is healed`() async throws {
    let simulation = Simulation()
    let (near, far) = (simulation.eventLoop(named: "near"), simulation.eventLoop(named: "far"))
    try await simulation.run {
      let kept = try await connect(simulation, to: near)
      let cut = try await connect(simulation, to: far)
      let partition = simulation.network.partition(
        [simulation.machine(of: simulation.mainLoop)],
        from: [simulation.machine(of: far)]
      )
      try kept.client.write([1])
      try cut.client.write([2])
      let attempt = try attempt(simulation, to: cut.address)
      try await simulation.sleep(for: .seconds(10))
      #expect(kept.server.read() == .bytes(1))
      #expect(cut.server.read() == .wouldBlock)
      #expect(outcome(attempt) == nil)
      partition.heal()
      try await simulation.sleep(for: .seconds(10))
      #expect(cut.server.read() == .bytes(1))
      #expect(outcome(attempt) == 0)
    }
  }

  @Test func `partitions overlap, and each counts until it is healed`() async throws {
    let simulation = Simulation()
    let far = simulation.eventLoop(named: "far")
    try await simulation.run {
      let pair = try await connect(simulation, to: far)
      let first = simulation.network.isolate(simulation.machine(of: far))
      simulation.network.isolate(simulation.machines[0], for: .seconds(5))
      try pair.client.write([1])
      first.heal()
      try await simulation.sleep(for: .seconds(4))
      #expect(pair.server.read() == .wouldBlock)
      try await simulation.sleep(for: .seconds(2))
      #expect(pair.server.read() == .bytes(1))
    }
  }

  @Test func `conditions hold from one machine to another, each way by itself`() async throws {
    let simulation = Simulation()
    let far = simulation.eventLoop(named: "far")
    let slow = LinkConditions(latency: .seconds(3) ... .seconds(3))
    simulation.network.setConditions(
      slow, from: simulation.machine(of: far), to: simulation.machines[0])
    try await simulation.run {
      let listener = try await on(far) { try ListenerProbe(Simulation.freePort, on: far) }
      let client = try attempt(simulation, to: listener.address)
      try await simulation.sleep(for: .milliseconds(2_900))
      #expect(outcome(client) == nil)
      #expect(listener.accepted.count == 1)
      try await simulation.sleep(for: .milliseconds(200))
      #expect(outcome(client) == 0)
      try client.write([1])
      try listener.accepted[0].write([2])
      try await simulation.sleep(for: .milliseconds(2_900))
      #expect(listener.accepted[0].read() == .bytes(1))
      #expect(client.read() == .wouldBlock)
      try await simulation.sleep(for: .milliseconds(200))
      #expect(client.read() == .bytes(1))
    }
  }

  @Test func `a paused machine does nothing while its kernel takes what comes`() async throws {
    let simulation = Simulation()
    let far = simulation.eventLoop(named: "far")
    let machine = simulation.machine(of: far)
    try await simulation.run {
      let pair = try await connect(simulation, to: far)
      let sleeper = simulation.spawn(on: far) {
        try await far.sleep(for: .seconds(5))
        return simulation.now
      }
      try await simulation.sleep(for: .zero)
      let began = simulation.now
      machine.pause(for: .seconds(60))
      #expect(machine.isPaused == true)
      #expect(try pair.client.write([1]) == 1)
      let second = try attempt(simulation, to: pair.address)
      try await simulation.sleep(for: .seconds(59))
      #expect(outcome(second) == 0)
      #expect(pair.listener.accepted.count == 1)
      #expect(pair.server.readiness.isEmpty)
      #expect(try await sleeper.value - began == 60_000_000_000)
      #expect(pair.listener.accepted.count == 2)
      #expect(pair.server.readiness == [.read])
    }
  }

  @Test func `a clock that jumps makes only that machine's timers due`() async throws {
    let simulation = Simulation()
    let far = simulation.eventLoop(named: "far")
    try await simulation.run {
      let sleeper = simulation.spawn(on: far) {
        try await far.sleep(for: .seconds(3_600))
        return simulation.now
      }
      try await simulation.sleep(for: .seconds(1))
      simulation.machine(of: far).moveClock(by: .seconds(3_000))
      #expect(far.clock.now.nanoseconds == 3_001_000_000_000)
      try await simulation.sleep(for: .seconds(598))
      #expect(simulation.earliestTimers.map(\.deadline.nanoseconds) == [600_000_000_000])
      #expect(try await sleeper.value.nanoseconds == 600_000_000_000)
    }
  }

  @Test func `a process that crashes has its sockets closed by its machine`() async throws {
    let simulation = Simulation()
    let address = SocketAddress.ipv4(10, 0, 0, 1, port: 80)
    try await simulation.run {
      let listeners = Mutex<[Unchecked<ListenerProbe>]>([])
      let process = simulation.process(named: "server") { run in
        let probe = Unchecked(value: try ListenerProbe(address, on: run.loop))
        listeners.withLock { $0.append(probe) }
      }
      try await process.start()
      let reader = try attempt(simulation, to: address)
      let writer = try attempt(simulation, to: address)
      try await simulation.sleep(for: .seconds(1))
      #expect([outcome(reader), outcome(writer)] == [0, 0])
      // One has nothing unread on the other side, and one does.
      try writer.write([1])
      try await simulation.sleep(for: .seconds(1))
      process.crash()
      try await simulation.sleep(for: .seconds(1))
      #expect(reader.read() == .end)
      writer.read()
      #expect(writer.failure == ECONNRESET)
      #expect(simulation.openListeners == [])
      let refused = try attempt(simulation, to: address)
      try await simulation.sleep(for: .seconds(1))
      #expect(outcome(refused) == ECONNREFUSED)
      #expect(!process.isRunning)
      // The ghost can do no harm.
      let ghost = listeners.withLock { $0 }[0].value
      #expect(throws: SocketError.self) { try ghost.accepted[0].write([9]) }
    }
  }

  @Test func `a machine that crashes sends nothing, and resets once it is back`() async throws {
    let simulation = Simulation()
    let address = SocketAddress.ipv4(10, 0, 0, 1, port: 80)
    try await simulation.run {
      let listeners = Mutex<[Unchecked<ListenerProbe>]>([])
      let process = simulation.process(named: "server") { run in
        let probe = Unchecked(value: try ListenerProbe(address, on: run.loop))
        listeners.withLock { $0.append(probe) }
      }
      try await process.start()
      let client = try attempt(simulation, to: address)
      let reader = try attempt(simulation, to: address)
      try await simulation.sleep(for: .seconds(1))
      #expect([outcome(client), outcome(reader)] == [0, 0])
      client.stream.setInterest(.read)
      client.forgetReadiness()
      process.crash(.machine)
      try client.write([1])
      let attempt = try attempt(simulation, to: address)
      try await simulation.sleep(for: .seconds(30))
      #expect(client.readiness.isEmpty)
      #expect(outcome(attempt) == nil)
      try await process.start()
      try await simulation.sleep(for: .seconds(5))
      client.read()
      #expect(client.failure == ECONNRESET)
      // One that writes nothing hears nothing, until the network is told.
      #expect(reader.read() == .wouldBlock)
      simulation.networkState { $0.loseForgotten(to: [address]) }
      reader.read()
      #expect(reader.failure == ECONNRESET)
      try await simulation.sleep(for: .seconds(60))
      #expect(outcome(attempt) == 0)
      #expect(process.current?.number == 2)
      #expect(listeners.withLock { $0 }[1].value.accepted.count == 1)
    }
  }
}
