// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// How a loop waits for events and reports stalls: what `init` of the loop gets, and more.
  package struct Configuration: Sendable {
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

    package var busyPoll: Duration
    package var stallThreshold: Duration
    package var onStall: (@Sendable (String, Duration, MessageType?) -> Void)?

    /// Whether clients and servers on the loop log only warnings, unless they have their own
    /// logger. Simulations set it, because they would log every connection of a virtual hour.
    package var isQuiet = false

    package init(
      poller: PollerKind = .systemDefault,
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
