// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A socket's descriptor, closed once: when its owner lets go of it.
struct Socket: ~Copyable {
  let descriptor: CInt

  init(owning descriptor: CInt) {
    self.descriptor = descriptor
  }

  init(_ family: CInt) throws(Errno) {
    descriptor = try SystemCall.socket(family)
  }

  deinit {
    SystemCall.close(descriptor)
  }

  /// Closes now.
  consuming func close() {}

  /// Gives the descriptor to somebody else, who closes it.
  consuming func relinquish() -> CInt {
    let descriptor = descriptor
    discard self
    return descriptor
  }

  /// Closes with a reset.
  consuming func reset() {
    SystemCall.setLingerToReset(descriptor)
  }

  /// How many bytes that are not even sent yet the kernel takes (tcp(7), `TCP_NOTSENT_LOWAT`).
  private static let notSentLowWater: CInt = 131_072

  /// Sets what every stream has: no delay for small writes, probes of an idle peer, a bound on what
  /// waits in the kernel, and the options asked for. `tcp` is false for a Unix-domain socket.
  borrowing func configure(_ options: SocketOptions, tcp: Bool) throws(Errno) {
    if let size = options.sendBuffer {
      try SystemCall.setOption(descriptor, SOL_SOCKET, SO_SNDBUF, CInt(clamping: size))
    }
    if let size = options.receiveBuffer {
      try SystemCall.setOption(descriptor, SOL_SOCKET, SO_RCVBUF, CInt(clamping: size))
    }
    guard tcp else { return }
    let level = CInt(IPPROTO_TCP)
    try SystemCall.setOption(descriptor, level, TCP_NODELAY, 1)
    try SystemCall.setOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
    // Little stands before a heartbeat or an urgent frame that comes later; the rest waits where it
    // can still be overtaken and taken back.
    try SystemCall.setOption(descriptor, level, CInt(TCP_NOTSENT_LOWAT), Socket.notSentLowWater)
    guard let timeout = options.userTimeout else { return }
    // The kernel takes 0 for its own bound.
    let milliseconds = CInt(clamping: max(1, (timeout - 1) / 1_000_000 + 1))
    #if canImport(Darwin)
    // In whole seconds, and over retransmission alone.
    let seconds = milliseconds / 1000 + (milliseconds % 1000 == 0 ? 0 : 1)
    try SystemCall.setOption(descriptor, level, TCP_RXT_CONNDROPTIME, seconds)
    #else
    try SystemCall.setOption(descriptor, level, CInt(TCP_USER_TIMEOUT), milliseconds)
    #endif
  }
}
