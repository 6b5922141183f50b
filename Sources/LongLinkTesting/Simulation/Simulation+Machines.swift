// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport
internal import Synchronization

extension Simulation {
  /// Makes another event loop, by default on a new machine of the same name. To its users, it
  /// behaves like a separate thread.
  public func eventLoop(named name: String, on machine: SimulatedMachine? = nil) -> EventLoop {
    let machine = machine ?? self.machine(named: name)
    return loopsMade.withLock { loops in
      let loop = Self.makeLoop(
        named: name,
        index: loops.count,
        machine: machine.index,
        networkState: networkState,
        origin: origin
      )
      loops.append(loop)
      return loop
    }
  }

  /// Makes a machine without loops. Names need not be unique.
  public func machine(named name: String) -> SimulatedMachine {
    let index = networkState { networkState in
      networkState.machines.append(NetworkState.MachineRecord(name: name))
      return networkState.machines.count - 1
    }
    return SimulatedMachine(index: index, networkState: networkState, name: name)
  }

  /// Returns the machine of one of the simulation's loops. Traps for any other loop.
  public func machine(of loop: EventLoop) -> SimulatedMachine {
    guard let driver = loop.driver as? SimulatedDriver, driver.networkState === networkState else {
      preconditionFailure("the loop does not belong to this simulation")
    }
    let (index, name) = networkState { networkState in
      let machine = networkState.loops[driver.index].machine
      return (machine, networkState.machines[machine].name)
    }
    return SimulatedMachine(index: index, networkState: networkState, name: name)
  }

  /// All machines, in order of creation. The first is the main loop's.
  public var machines: [SimulatedMachine] {
    let names = networkState { $0.machines.map(\.name) }
    return names.indices.map {
      SimulatedMachine(index: $0, networkState: networkState, name: names[$0])
    }
  }

  /// Makes a process on a new machine of the same name. It does not run yet; each start runs its
  /// body.
  ///
  /// Values that the body captures survive a crash, like the contents of a disk.
  public func process(
    named name: String,
    _ body: @escaping @Sendable (SimulatedProcess.Run) async throws -> Void
  ) -> SimulatedProcess {
    SimulatedProcess(name, in: self, loseState: {}, body)
  }

  /// Makes a process with a state that survives crashes, until a start with `losingState`.
  ///
  /// `state` makes the state at the first start, and anew at each start with `losingState`.
  public func process<State: Sendable>(
    named name: String,
    state: @escaping @Sendable () -> State,
    _ body: @escaping @Sendable (SimulatedProcess.Run, State) async throws -> Void
  ) -> SimulatedProcess {
    let kept = Box(Mutex<State?>(nil))
    return SimulatedProcess(name, in: self, loseState: { kept.value.withLock { $0 = nil } }) {
      run in
      let value = kept.value.withLock { value in
        let present = value ?? state()
        value = present
        return present
      }
      try await body(run, value)
    }
  }

  /// Ends all lasting faults: silences, clogs, pauses, partitions, stopped readers and pending bit
  /// flips. Sets all behaviors of connecting to `normal`. Link conditions, names, clocks, calendars
  /// and crashed processes do not change.
  public func heal() {
    networkState { $0.heal() }
  }
}
