// SPDX-License-Identifier: Apache-2.0

/// How often a loop has called the system, by kind, since it began.
package struct SystemCallCounts: Equatable, Sendable {
  /// `epoll_wait` or `poll`.
  package var waits: UInt64 = 0
  /// `recv` on streams.
  package var reads: UInt64 = 0
  /// `send` on streams.
  package var writes: UInt64 = 0
  /// Changes of what is polled for: `epoll_ctl`, or none with `poll`.
  package var controls: UInt64 = 0
  /// `accept` on listeners.
  package var accepts: UInt64 = 0

  package init() {}
}

extension EventLoop {
  /// What the loop has asked of the system so far; nothing where it does not run over the kernel.
  package var systemCalls: SystemCallCounts {
    preconditionCurrent()
    return (driver as? KernelDriver)?.systemCalls ?? SystemCallCounts()
  }
}
