// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

// The machines of a world: pauses, crashes and partitions.
extension NetworkState {
  /// The state of a machine.
  struct MachineRecord {
    let name: String
    /// How far the machine's clock is ahead of the world's, in nanoseconds. Any thread may use it.
    let clock = Box(Atomic<Int64>(0))
    /// How far the machine's calendar is ahead of its clock, in nanoseconds. Any thread may use it.
    let calendar = Box(Atomic<Int64>(0))
    var isPaused = false
    /// Whether the whole machine has crashed and its process was not started again.
    var isOff = false
  }

  // MARK: Partitions

  /// Whether packets between two machines do not arrive: they are separated, or one is off.
  func areCut(_ one: Int, _ other: Int) -> Bool {
    if machines[one].isOff || machines[other].isOff { return true }
    return one != other && partitions.separate(one, other)
  }

  /// Whether packets from an end do not arrive at the moment.
  func isSilent(_ end: LinkEnd) -> Bool {
    if end.output.isSilent { return true }
    guard let other = self.end(end.name.other) else { return false }
    return areCut(end.machine, other.machine)
  }

  mutating func part(_ left: Set<Int>, from right: Set<Int>?) -> Int {
    let number = partitions.add(left, right)
    record(.partitioned, value: number)
    return number
  }

  mutating func endPartition(_ number: Int) {
    guard partitions.remove(number) else { return }
    record(.partitionEnded, value: number)
    resendHeld()
  }

  /// Sends the held packets again on all ends that are no longer silent.
  mutating func resendHeld() {
    for number in links.keys.sorted() {
      resendHeld(EndName(link: number, side: .initiator))
      resendHeld(EndName(link: number, side: .acceptor))
    }
  }

  mutating func resendHeld(_ name: EndName) {
    guard let end = end(name), !end.output.held.isEmpty, !isSilent(end) else { return }
    end.givesUpAt = nil
    let held = end.output.held
    end.output.held = []
    for packet in held { send(packet, from: end) }
  }

  // MARK: Pauses

  mutating func pause(_ machine: Int) {
    guard !machines[machine].isPaused else { return }
    machines[machine].isPaused = true
    record(.paused, machine: machine)
  }

  mutating func resume(_ machine: Int) {
    guard machines[machine].isPaused else { return }
    machines[machine].isPaused = false
    record(.resumed, machine: machine)
  }

  /// Whether a loop gets no turns. The loop of a crashed process gets turns, so that it can end.
  func isFrozen(_ loop: Int) -> Bool {
    machines[loops[loop].machine].isPaused && !loops[loop].isGhost
  }

  mutating func moveClock(of machine: Int, by time: Int64) {
    machines[machine].clock.value.add(time, ordering: .acquiringAndReleasing)
    record(.clockMoved, value: Int(time), machine: machine)
  }

  // MARK: Crashes

  /// Ends the sockets of a machine's process, and cuts its loops off from the world.
  ///
  /// The kernel closes the sockets of a crashed process. A crashed machine sends nothing.
  mutating func crash(_ machine: Int, isWhole: Bool) {
    record(isWhole ? .machineCrashed : .processCrashed, machine: machine)
    machines[machine].isPaused = false
    for index in loops.indices where loops[index].machine == machine {
      loops[index].isGhost = true
      _ = loops[index].ready.takeAll()
    }
    for listener in addresses.listeners(of: machine) {
      if isWhole { addresses.listeners[listener]?.queue = [] }
      closeListener(listener)
    }
    machines[machine].isOff = isWhole
    for number in links.keys.sorted() {
      for side in [Side.initiator, .acceptor] {
        let name = EndName(link: number, side: side)
        guard let end = end(name), end.machine == machine, end.isOpen else { continue }
        if isWhole { vanish(end) } else { close(name) }
        end.loop = nil
      }
    }
  }

  /// Handles the start of a machine. Its earlier connections are gone.
  mutating func started(_ machine: Int) {
    record(.processStarted, machine: machine)
    machines[machine].isOff = false
    resume(machine)
    resendHeld()
  }

  private mutating func vanish(_ end: LinkEnd) {
    end.output.held = []
    end.isBroken = true
    retire(end)
  }
}
