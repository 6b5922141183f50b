// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// A socket's descriptor, which is closed once, when its owner releases it.
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

  /// Transfers the descriptor to the caller, which must close it.
  consuming func relinquish() -> CInt {
    let descriptor = descriptor
    discard self
    return descriptor
  }

  /// Closes with a reset.
  consuming func reset() {
    SystemCall.setLingerToReset(descriptor)
  }

  /// The number of unsent bytes that the kernel accepts (tcp(7), `TCP_NOTSENT_LOWAT`).
  private static let notSentLowWater: CInt = 131_072

  /// Sets the options of every transport: no delay for small writes, keep-alive, a limit on unsent
  /// bytes in the kernel, and the given options. `tcp` is false for a Unix-domain socket.
  borrowing func configure(_ options: SocketOptions, tcp: Bool) throws(Errno) {
    if let size = options.sendBuffer {
      try SystemCall.setOption(descriptor, SOL_SOCKET, SO_SNDBUF, CInt(clamping: size))
    }
    guard tcp else { return }
    let level = CInt(IPPROTO_TCP)
    try SystemCall.setOption(descriptor, level, TCP_NODELAY, 1)
    try SystemCall.setOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
    // So few bytes precede a later heartbeat or urgent frame. The others wait in this process,
    // where later frames can pass them and they can be withdrawn.
    try SystemCall.setOption(descriptor, level, CInt(TCP_NOTSENT_LOWAT), Socket.notSentLowWater)
    guard let timeout = options.userTimeout else { return }
    // To the kernel, 0 means its own default.
    let milliseconds = CInt(clamping: max(1, (timeout - 1) / 1_000_000 + 1))
    #if canImport(Darwin)
    // In whole seconds, and for retransmissions only.
    let seconds = milliseconds / 1000 + (milliseconds % 1000 == 0 ? 0 : 1)
    try SystemCall.setOption(descriptor, level, TCP_RXT_CONNDROPTIME, seconds)
    #else
    try SystemCall.setOption(descriptor, level, CInt(TCP_USER_TIMEOUT), milliseconds)
    #endif
  }
}
