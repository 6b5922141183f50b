// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A listening socket of one loop.
final class KernelListener: StreamListener {
  let localAddress: SocketAddress
  private let endpoint: KernelEndpoint
  private let options: SocketOptions
  /// Given up for a moment when there is no descriptor left to accept with.
  private var reserve: CInt
  /// The file that listening made, which is removed at the end if it is still that one.
  private var file: SocketFile?

  init(
    on address: SocketAddress,
    options: SocketOptions,
    loop: EventLoop,
    driver: KernelDriver
  ) throws(Errno) {
    let socket = try Socket(address.nativeFamily)
    try SystemCall.setOption(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    // What is accepted inherits the options.
    try socket.configure(options, tcp: address.family != .unix)
    file = try Self.bind(socket.descriptor, to: address)
    do throws(Errno) {
      try SystemCall.listen(socket.descriptor, backlog: options.backlog)
      localAddress = try SystemCall.localAddress(socket.descriptor) ?? address
      reserve = try SystemCall.openNull()
    } catch {
      if file != nil, let path = address.path { SystemCall.removeFile(at: path) }
      throw error
    }
    self.options = options
    endpoint = KernelEndpoint(socket, loop: loop, driver: driver)
  }

  deinit {
    giveUp()
  }

  /// Binds, on a Unix-domain address in place of a file that nobody listens on any more. Returns
  /// the file that came of it.
  private static func bind(
    _ descriptor: CInt,
    to address: SocketAddress
  ) throws(Errno) -> SocketFile? {
    guard let path = address.path else {
      try SystemCall.bind(descriptor, to: address)
      return nil
    }
    do throws(Errno) {
      try SystemCall.bind(descriptor, to: address)
    } catch {
      guard error.code == EADDRINUSE, isAbandoned(path) else { throw error }
      SystemCall.removeFile(at: path)
      try SystemCall.bind(descriptor, to: address)
    }
    return SystemCall.socketFile(at: path)
  }

  /// True for the file of a socket that refuses to be connected to.
  private static func isAbandoned(_ path: String) -> Bool {
    guard SystemCall.socketFile(at: path) != nil else { return false }
    do throws(Errno) {
      let probe = try Socket(AF_UNIX)
      _ = try SystemCall.connect(probe.descriptor, to: .unix(path: path))
      return false
    } catch {
      return error.code == ECONNREFUSED
    }
  }

  func attach(_ handler: any StreamHandler, token: UInt64) {
    endpoint.attach(handler, token: token)
  }

  func setInterest(_ interest: Readiness) {
    endpoint.setInterest(interest)
  }

  func accept() throws(SocketError) -> (any AcceptedStream)? {
    do throws(Errno) {
      try endpoint.requireUsable()
      return try acceptNext()
    } catch {
      // The system wants a descriptor before it looks whether anybody waits.
      if error.code == EMFILE || error.code == ENFILE, !turnOneAway() { return nil }
      throw SocketError(operation: "accept", errno: error.code, address: localAddress)
    }
  }

  private func acceptNext() throws(Errno) -> (any AcceptedStream)? {
    while true {
      endpoint.driver.systemCalls.accepts += 1
      do throws(Errno) {
        guard let (accepted, peer) = try SystemCall.accept(endpoint.descriptor) else { return nil }
        let stream = Socket(owning: accepted)
        #if !os(Linux)
        try stream.configure(options, tcp: localAddress.family != .unix)
        #endif
        // A client's Unix-domain socket mostly has no path.
        return KernelAcceptedStream(stream, peer: peer?.path == "" ? nil : peer)
      } catch {
        // These are about a connection that came and went while it waited (accept(2)).
        switch error.code {
        case ECONNABORTED, EPROTO, ENOPROTOOPT, ENETDOWN, EHOSTUNREACH, ENETUNREACH: continue
        default: throw error
        }
      }
    }
  }

  /// With no descriptor left, a connection could neither be taken nor refused and would be reported
  /// for ever. The reserve makes room to take it and close it, so that its peer knows.
  ///
  /// Returns false when nobody waited after all.
  private func turnOneAway() -> Bool {
    defer { reopenReserve() }
    guard reserve >= 0 else { return true }
    SystemCall.close(reserve)
    reserve = -1
    endpoint.driver.systemCalls.accepts += 1
    do throws(Errno) {
      guard let (accepted, _) = try SystemCall.accept(endpoint.descriptor) else { return false }
      SystemCall.close(accepted)
    } catch {
      // Another thread has taken the room. The connection still waits, for the next time.
    }
    return true
  }

  private func reopenReserve() {
    // Where another thread was quicker, the next time tries again.
    if reserve < 0 { reserve = (try? SystemCall.openNull()) ?? -1 }
  }

  func close() {
    giveUp()
    endpoint.release()?.close()
  }

  /// Removes the file, so that nobody finds one that leads nowhere, and closes the reserve.
  private func giveUp() {
    if let file = file.take(), let path = localAddress.path,
      SystemCall.socketFile(at: path) == file
    {
      SystemCall.removeFile(at: path)
    }
    if reserve >= 0 { SystemCall.close(reserve) }
    reserve = -1
  }
}
