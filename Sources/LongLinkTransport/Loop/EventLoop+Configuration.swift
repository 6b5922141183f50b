// SPDX-License-Identifier: Apache-2.0

extension EventLoop {
  /// How a loop waits, and what it does about work that holds it up.
  public struct Configuration: Sendable {
    /// The ways to wait for sockets.
    public enum PollerKind: Hashable, Sendable {
      /// The best one that the system has.
      case systemDefault
      /// epoll(7), which Linux alone has.
      case epoll
      /// poll(2), which takes time for each open socket.
      case poll
    }

    /// How the loop waits for sockets. The default is the best that the system has.
    public var poller: PollerKind

    /// How long the loop asks the kernel again and again for events before it sleeps: not at all by
    /// default, and 0 to 1 s.
    ///
    /// A thread that sleeps takes tens of microseconds to wake, which is most of the time of a
    /// request between two processes of one machine. Asking takes the whole of a processor core for
    /// as long, also while nothing happens: it is for loops that are hardly ever idle, or have a
    /// core of their own.
    public var busyPoll: Duration

    /// How long a turn of the loop may keep it busy before it counts as stalled: 200 ms by default.
    public var stallThreshold: Duration

    /// Called on the loop, after a stall is over. It must not block.
    public var onStall: (@Sendable (Stall) -> Void)?

    /// Whether clients and servers on the loop log warnings alone, unless they were given a logger:
    /// so it is in a simulation, whose tests would tell of each connection of a virtual hour.
    package var isQuiet = false

    /// Makes a configuration; each part has a default.
    public init(
      poller: PollerKind = .systemDefault,
      busyPoll: Duration = .zero,
      stallThreshold: Duration = .milliseconds(200),
      onStall: (@Sendable (Stall) -> Void)? = nil
    ) {
      self.poller = poller
      self.busyPoll = busyPoll
      self.stallThreshold = stallThreshold
      self.onStall = onStall
    }
  }
}
