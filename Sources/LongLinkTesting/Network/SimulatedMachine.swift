// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// A machine of a simulation: the loops on it share an address, a clock and a fate.
///
/// Each loop that ``Simulation/eventLoop(named:on:)`` makes is on one, by default on its own. From
/// any thread; changes hold from the present moment of virtual time on.
public struct SimulatedMachine: Sendable {
  let index: Int
  let networkState: SharedNetwork
  /// The name that the machine, or its only loop, was given.
  public let name: String

  /// Freezes the process on it: no timer fires and nothing is read or written, until `resume`.
  ///
  /// Its kernel goes on: it acknowledges what arrives and accepts connections, as after `SIGSTOP`.
  /// `duration` is how long it lasts; nil, the default, is until `resume` or ``Simulation/heal()``.
  /// Bodies run on the machine "main": give a duration to pause that.
  public func pause(for duration: Duration? = nil) {
    networkState { $0.pause(index) }
    networkState.after(duration) { $0.resume(index) }
  }

  /// Ends a pause. What has arrived meanwhile is there, and timers are late.
  public func resume() {
    networkState { $0.resume(index) }
  }

  /// Whether it is paused.
  public var isPaused: Bool { networkState { $0.machines[index].isPaused } }

  /// Moves the clocks of its loops forward at once, as when a machine was suspended; timers in
  /// between are due then. A negative duration is a programming error.
  public func moveClock(by duration: Duration) {
    precondition(duration >= .zero, "a monotonic clock does not go back")
    networkState { $0.moveClock(of: index, by: duration.clampedNanoseconds) }
  }
}

extension SimulatedMachine: Hashable {
  /// Machines are equal when they are the same one.
  public static func == (lhs: SimulatedMachine, rhs: SimulatedMachine) -> Bool {
    lhs.index == rhs.index && lhs.networkState === rhs.networkState
  }

  /// Feeds the machine's place among those of its simulation into a hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(index)
  }
}
