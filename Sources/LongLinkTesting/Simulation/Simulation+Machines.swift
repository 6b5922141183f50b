// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport
internal import Synchronization

extension Simulation {
  /// Makes another event loop, a thread of its own as far as its users can tell, on `machine` or
  /// else on a new machine of the same name.
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

  /// Makes a machine, with no loop on it yet. Several may have one name.
  public func machine(named name: String) -> SimulatedMachine {
    let index = networkState { networkState in
      networkState.machines.append(NetworkState.MachineRecord(name: name))
      return networkState.machines.count - 1
    }
    return SimulatedMachine(index: index, networkState: networkState, name: name)
  }

  /// The machine that one of the simulation's loops is on.
  public func machine(of loop: EventLoop) -> SimulatedMachine {
    guard let driver = loop.driver as? SimulatedDriver, driver.networkState === networkState else {
      preconditionFailure("a loop of this simulation has a machine in it")
    }
    let (index, name) = networkState { networkState in
      let machine = networkState.loops[driver.index].machine
      return (machine, networkState.machines[machine].name)
    }
    return SimulatedMachine(index: index, networkState: networkState, name: name)
  }

  /// All machines, in the order in which they were made; the first is the main loop's.
  public var machines: [SimulatedMachine] {
    let names = networkState { $0.machines.map(\.name) }
    return names.indices.map {
      SimulatedMachine(index: $0, networkState: networkState, name: names[$0])
    }
  }

  /// Makes a process, which does not run yet. Its body builds it at each start.
  ///
  /// What the body captures lives on over a crash, as a disk does.
  public func process(
    named name: String,
    _ body: @escaping @Sendable (SimulatedProcess.Run) async throws -> Void
  ) -> SimulatedProcess {
    SimulatedProcess(name, in: self, loseState: {}, body)
  }

  /// Makes a process with a state that lives on over a crash, until a start that loses it.
  ///
  /// `state` makes it, for the first time at the first start.
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

  /// Ends every fault that lasts: silences, clogs, pauses, partitions, readers that do not read,
  /// bits of bytes to come and what was said of connects. Conditions, names, clocks and crashed
  /// processes stay as they are.
  public func heal() {
    networkState { $0.heal() }
  }
}
