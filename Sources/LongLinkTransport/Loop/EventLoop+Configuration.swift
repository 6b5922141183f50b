// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension EventLoop {
  /// How a loop waits for events and reports stalls.
  public struct Configuration: Sendable {
    /// The ways to wait for sockets.
    package enum PollerKind: Hashable, Sendable {
      /// The best way that the system has.
      case systemDefault
      /// epoll(7), which only Linux has.
      case epoll
      /// poll(2), whose cost grows with the number of open sockets.
      case poll
    }

    /// How the loop waits for sockets. The default is the best way that the system has.
    package var poller: PollerKind

    /// How long the loop polls the kernel for events before it sleeps: 0 to 1 s, default 0.
    ///
    /// A sleeping thread takes tens of microseconds to wake, which is most of the time of a request
    /// between two processes of one machine. Polling uses a whole processor core, even if nothing
    /// happens. Use it for loops that are hardly ever idle, or have a dedicated core.
    public var busyPoll: Duration

    /// The duration of a turn above which the loop counts as stalled. Default 200 ms.
    public var stallThreshold: Duration

    /// Called on the loop after a turn in which work blocked it for too long. It must not block.
    ///
    /// It gets the loop's name, how long the loop was blocked, and the message type of the handler
    /// that took most of the time. The type is nil if no request handler did, or if that is not
    /// known: several handlers began in that turn, and the loop had not stalled before. A loop
    /// times its handlers only after its first stall.
    public var onStall:
      (@Sendable (_ loop: String, _ duration: Duration, _ messageType: MessageType?) -> Void)?

    /// Whether clients and servers on the loop log only warnings, unless they have their own
    /// logger. Simulations set it, because they would log every connection of a virtual hour.
    package var isQuiet = false

    /// Makes a configuration; each parameter has a default.
    public init(
      busyPoll: Duration = .zero,
      stallThreshold: Duration = .milliseconds(200),
      onStall: (@Sendable (String, Duration, MessageType?) -> Void)? = nil
    ) {
      self.init(
        poller: .systemDefault, busyPoll: busyPoll, stallThreshold: stallThreshold,
        onStall: onStall)
    }

    package init(
      poller: PollerKind,
      busyPoll: Duration = .zero,
      stallThreshold: Duration = .milliseconds(200),
      onStall: (@Sendable (String, Duration, MessageType?) -> Void)? = nil
    ) {
      self.poller = poller
      self.busyPoll = busyPoll
      self.stallThreshold = stallThreshold
      self.onStall = onStall
    }
  }
}
