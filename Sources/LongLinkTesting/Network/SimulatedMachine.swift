// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// A machine of a simulation. Its loops share an address and a clock, and are paused together.
///
/// ``Simulation/eventLoop(named:on:)`` puts each loop on a machine, by default on a new one. Any
/// thread may use a machine. Changes take effect at the current virtual time.
public struct SimulatedMachine: Sendable {
  package let index: Int
  let networkState: SharedNetwork
  /// The name of the machine, or of the loop for which it was made.
  public let name: String

  /// Freezes the machine's process: no timer fires, and nothing is read or written.
  ///
  /// Its kernel keeps running: it acknowledges bytes and accepts connections, as after `SIGSTOP`.
  /// The pause lasts for `duration`, or until `resume` or ``Simulation/heal()``, or until the
  /// process crashes or starts. The simulation's body runs on the machine "main", so pass a
  /// duration when you pause that.
  public func pause(for duration: Duration? = nil) {
    networkState { $0.pause(index) }
    networkState.after(duration) { $0.resume(index) }
  }

  /// Ends a pause. The process then reads what has arrived, and its timers fire late.
  public func resume() {
    networkState { $0.resume(index) }
  }

  /// Whether the machine's process is paused.
  public var isPaused: Bool { networkState { $0.machines[index].isPaused } }

  /// The difference between the machine's calendar and ``Simulation/calendar``, positive if the
  /// machine is ahead; initially zero. What ``moveClock(by:)`` has added comes on top of it.
  ///
  /// The machine's calendar only decides whether certificates and tickets are valid. A new value
  /// counts when the calendar is next read, and does not affect timers.
  public var calendarOffset: Duration {
    get { .nanoseconds(calendar.value.load(ordering: .acquiring)) }
    nonmutating set {
      calendar.value.store(newValue.clampedNanoseconds, ordering: .releasing)
    }
  }

  private var calendar: Box<Atomic<Int64>> { networkState { $0.machines[index].calendar } }

  /// Moves the clocks of the machine's loops, and its calendar, forward, as after a suspended
  /// machine wakes. Timers in between become due. A negative duration traps.
  public func moveClock(by duration: Duration) {
    precondition(duration >= .zero, "a monotonic clock does not go back")
    networkState { $0.moveClock(of: index, by: duration.clampedNanoseconds) }
  }
}

extension SimulatedMachine: Hashable {
  /// Returns whether both are the same machine.
  public static func == (lhs: SimulatedMachine, rhs: SimulatedMachine) -> Bool {
    lhs.index == rhs.index && lhs.networkState === rhs.networkState
  }

  /// Feeds the machine's index in its simulation into a hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(index)
  }
}
