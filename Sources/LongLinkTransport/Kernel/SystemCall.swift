// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary

/// A system error number.
struct Errno: Error, Equatable {
  let code: CInt

  init(_ code: CInt) {
    self.code = code
  }
}

/// The system calls, one function each, with common handling of signal interruptions.
///
/// "Would block" is a value here, not an error. Every new descriptor is close-on-exec and
/// non-blocking.
enum SystemCall {
  /// Repeats a call while a signal interrupts it.
  @inline(__always)
  private static func retrying<I: FixedWidthInteger & SignedInteger>(
    _ call: () -> I
  ) throws(Errno) -> I {
    while true {
      let result = call()
      if result >= 0 { return result }
      let code = errno
      if code != EINTR { throw Errno(code) }
    }
  }

  /// Repeats a transfer of bytes while a signal interrupts it; returns nil if it would block.
  @inline(__always)
  private static func transferring(_ call: () -> Int) throws(Errno) -> Int? {
    while true {
      let result = call()
      if result >= 0 { return result }
      let code = errno
      if code == EAGAIN || code == EWOULDBLOCK { return nil }
      if code != EINTR { throw Errno(code) }
    }
  }

  static func socket(_ family: CInt) throws(Errno) -> CInt {
    #if canImport(Darwin)
    let descriptor = try retrying { LongLinkCLibrary.socket(family, SOCK_STREAM, 0) }
    try preparingOrClosing(descriptor)
    return descriptor
    #else
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return try retrying { LongLinkCLibrary.socket(family, type, 0) }
    #endif
  }

  #if canImport(Darwin)
  private static func preparingOrClosing(_ descriptor: CInt) throws(Errno) {
    do throws(Errno) {
      try prepare(descriptor)
      try setOption(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1)
    } catch {
      close(descriptor)
      throw error
    }
  }
  #endif

  /// Makes a descriptor close-on-exec and non-blocking, if it could not be created that way.
  static func prepare(_ descriptor: CInt) throws(Errno) {
    _ = try retrying { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    let flags = try retrying { fcntl(descriptor, F_GETFL) }
    _ = try retrying { fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
  }

  /// Closes a descriptor. It is closed even after an error, so the call must not be repeated.
  static func close(_ descriptor: CInt) {
    _ = LongLinkCLibrary.close(descriptor)
  }

  /// Starts to connect. Returns true if that is already complete.
  static func connect(_ descriptor: CInt, to address: SocketAddress) throws(Errno) -> Bool {
    try unsafe address.withNative { (native, length) throws(Errno) -> Bool in
      let result = unsafe LongLinkCLibrary.connect(descriptor, native, length)
      if result == 0 { return true }
      let code = errno
      // An interrupted connect continues asynchronously, and must not be repeated.
      if code == EINPROGRESS || code == EINTR { return false }
      throw Errno(code)
    }
  }

  static func bind(_ descriptor: CInt, to address: SocketAddress) throws(Errno) {
    try unsafe address.withNative { (native, length) throws(Errno) in
      _ = try retrying { unsafe LongLinkCLibrary.bind(descriptor, native, length) }
    }
  }

  static func listen(_ descriptor: CInt, backlog: CInt) throws(Errno) {
    _ = try retrying { LongLinkCLibrary.listen(descriptor, backlog) }
  }

  /// Accepts a waiting connection; nil if there is none.
  static func accept(
    _ descriptor: CInt
  ) throws(Errno) -> (descriptor: CInt, peer: SocketAddress?)? {
    var accepted: CInt? = nil
    let peer = try unsafe SocketAddress.native { (native, length) throws(Errno) in
      accepted = try transferring {
        #if canImport(Darwin)
        unsafe Int(LongLinkCLibrary.accept(descriptor, native, length))
        #else
        unsafe Int(cll_accept(descriptor, native, length))
        #endif
      }.map { CInt($0) }
    }
    guard let accepted else { return nil }
    #if canImport(Darwin)
    try preparingOrClosing(accepted)
    #endif
    return (accepted, peer)
  }

  /// Receives at most as many bytes as fit into `buffer`; nil if there are none yet.
  @inline(__always)
  static func receive(
    _ descriptor: CInt,
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int? {
    try transferring { unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0) }
  }

  /// Sends a prefix of `bytes` without raising SIGPIPE; nil if there is no room.
  @inline(__always)
  static func send(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int? {
    #if canImport(Darwin)
    let flags: CInt = 0
    #else
    let flags = CInt(MSG_NOSIGNAL)
    #endif
    return try transferring {
      unsafe LongLinkCLibrary.send(descriptor, bytes.baseAddress, bytes.count, flags)
    }
  }

  static func shutDownWriting(_ descriptor: CInt) {
    // It can fail only if the connection has ended, which the next read reports.
    _ = shutdown(descriptor, CInt(SHUT_WR))
  }

  static func setOption(
    _ descriptor: CInt,
    _ level: CInt,
    _ name: CInt,
    _ value: CInt
  ) throws(Errno) {
    var value = value
    let size = socklen_t(MemoryLayout<CInt>.size)
    _ = try retrying { unsafe setsockopt(descriptor, level, name, &value, size) }
  }

  /// The number of bytes in the send buffer, including those in flight; 0 if not known.
  static func unacknowledgedBytes(_ descriptor: CInt) -> Int {
    #if canImport(Darwin)
    var value: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_NWRITE, &value, &size)
    return result == 0 ? Int(max(0, value)) : 0
    #else
    return Int(max(0, cll_unacknowledged(descriptor)))
    #endif
  }

  /// The round-trip time of a TCP socket as the kernel estimates it, in nanoseconds; nil if not
  /// known.
  static func roundTrip(_ descriptor: CInt) -> Int64? {
    #if os(Linux)
    let microseconds = cll_round_trip(descriptor)
    return microseconds > 0 ? Int64(microseconds) * 1_000 : nil
    #else
    return nil
    #endif
  }

  /// The number of bytes that a read would find; 0 if not known.
  static func unreadBytes(_ descriptor: CInt) -> Int {
    Int(max(0, cll_unread(descriptor)))
  }

  /// The number of involuntary context switches of the calling thread; nil if the system does not
  /// count them.
  static var preemptions: Int? {
    let count = cll_preemptions()
    return count < 0 ? nil : count
  }

  /// Makes the next close drop undelivered bytes and reset the connection.
  static func setLingerToReset(_ descriptor: CInt) {
    var value = linger(l_onoff: 1, l_linger: 0)
    let size = socklen_t(MemoryLayout<linger>.size)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, size)
  }

  /// Returns and clears the pending error of a socket; 0 for none.
  static func pendingError(_ descriptor: CInt) throws(Errno) -> CInt {
    var value: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    _ = try retrying { unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &size) }
    return value
  }

  static func localAddress(_ descriptor: CInt) throws(Errno) -> SocketAddress? {
    try unsafe SocketAddress.native { (native, length) throws(Errno) in
      _ = try retrying { unsafe getsockname(descriptor, native, length) }
    }
  }

  /// Whether a socket is connected.
  static func hasPeer(_ descriptor: CInt) -> Bool {
    let peer = try? unsafe SocketAddress.native { (native, length) throws(Errno) in
      _ = try retrying { unsafe getpeername(descriptor, native, length) }
    }
    return peer != nil
  }

  /// Opens a descriptor whose only purpose is to be closed when another one is needed.
  static func openNull() throws(Errno) -> CInt {
    try retrying { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
  }

  /// The identity of the socket file at a path; nil if there is none.
  static func socketFile(at path: String) -> SocketFile? {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    return SocketFile(
      device: UInt64(truncatingIfNeeded: status.st_dev),
      node: UInt64(status.st_ino)
    )
  }

  static func removeFile(at path: String) {
    _ = unsafe unlink(path)
  }

  #if os(Linux)
  /// Makes a timer of the monotonic clock: a descriptor that is readable once it has expired.
  static func timer() throws(Errno) -> CInt {
    try retrying { cll_timer() }
  }

  /// Makes a timer expire at an instant, in nanoseconds and above 0; at once if it has passed.
  static func setTimer(_ descriptor: CInt, at nanoseconds: Int64) {
    let result = cll_timer_set(descriptor, nanoseconds)
    precondition(result == 0, "a timer of the system could not be set")
  }
  #endif

  /// The monotonic time, in nanoseconds.
  @inline(__always)
  static func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// The time of the calendar, in nanoseconds since 1970.
  static func unixNanoseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

/// The identity of a Unix-domain socket's file.
struct SocketFile: Equatable {
  let device: UInt64
  let node: UInt64
}
