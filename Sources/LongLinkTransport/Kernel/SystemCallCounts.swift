// SPDX-License-Identifier: Apache-2.0

/// The number of system calls of a loop since it started, by kind.
package struct SystemCallCounts: Equatable, Sendable {
  /// `epoll_wait` or `poll`.
  package var waits: UInt64 = 0
  /// `recv` on transports.
  package var reads: UInt64 = 0
  /// `send` on transports.
  package var writes: UInt64 = 0
  /// Changes of interest: `epoll_ctl`, or no system call with `poll`.
  package var controls: UInt64 = 0
  /// `accept` on listeners.
  package var accepts: UInt64 = 0

  package init() {}
}

extension EventLoop {
  /// The loop's system calls so far; none if it does not run over the kernel.
  package var systemCalls: SystemCallCounts {
    preconditionCurrent()
    return (driver as? KernelDriver)?.systemCalls ?? SystemCallCounts()
  }
}
