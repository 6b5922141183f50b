// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// A listening socket of one loop.
final class KernelListener: TransportListener {
  let localAddress: SocketAddress
  private let endpoint: KernelEndpoint
  private let options: SocketOptions
  /// A spare descriptor, which is closed for a moment if there is none left to accept with.
  private var reserve: CInt
  /// The socket file that `bind` created. It is removed at the end, unless it was replaced.
  private var file: SocketFile?

  init(
    on address: SocketAddress,
    options: SocketOptions,
    loop: EventLoop,
    driver: KernelDriver
  ) throws(Errno) {
    let socket = try Socket(address.nativeFamily)
    try SystemCall.setOption(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    // Accepted sockets inherit the options.
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
    stopListening()
  }

  /// Binds, and returns the new file for a Unix-domain address. A stale file without a listener is
  /// replaced.
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

  /// Whether a path is the file of a socket that refuses connections.
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

  func attach(_ handler: any TransportHandler, token: UInt64) {
    endpoint.attach(handler, token: token)
  }

  func setInterest(_ interest: Readiness) {
    endpoint.setInterest(interest)
  }

  func accept() throws(SocketError) -> (any AcceptedTransport)? {
    do throws(Errno) {
      try endpoint.requireUsable()
      return try acceptNext()
    } catch {
      // The system allocates a descriptor before it checks whether a connection waits.
      if error.code == EMFILE || error.code == ENFILE, !turnOneAway() { return nil }
      throw SocketError(operation: "accept", errno: error.code, address: localAddress)
    }
  }

  private func acceptNext() throws(Errno) -> (any AcceptedTransport)? {
    while true {
      endpoint.driver.systemCalls.accepts += 1
      do throws(Errno) {
        guard let (accepted, peer) = try SystemCall.accept(endpoint.descriptor) else { return nil }
        let transport = Socket(owning: accepted)
        #if !os(Linux)
        try transport.configure(options, tcp: localAddress.family != .unix)
        #endif
        // A client's Unix-domain socket usually has no path.
        return KernelAcceptedTransport(transport, peer: peer?.path == "" ? nil : peer)
      } catch {
        // These errors are about a connection that ended while it waited (accept(2)).
        switch error.code {
        case ECONNABORTED, EPROTO, ENOPROTOOPT, ENETDOWN, EHOSTUNREACH, ENETUNREACH: continue
        default: throw error
        }
      }
    }
  }

  /// Accepts and closes a waiting connection with the spare descriptor. Without any descriptor
  /// left, the connection could neither be accepted nor refused, and would be reported forever.
  ///
  /// Returns false if no connection waited after all.
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
      // Another thread took the free descriptor. The connection still waits for the next try.
    }
    return true
  }

  private func reopenReserve() {
    // If another thread took the descriptor, the next call tries again.
    if reserve < 0 { reserve = (try? SystemCall.openNull()) ?? -1 }
  }

  func close() {
    stopListening()
    endpoint.release()?.close()
  }

  /// Removes the file, so that no stale one remains, and closes the spare descriptor.
  private func stopListening() {
    if let file = file.take(), let path = localAddress.path,
      SystemCall.socketFile(at: path) == file
    {
      SystemCall.removeFile(at: path)
    }
    if reserve >= 0 { SystemCall.close(reserve) }
    reserve = -1
  }
}
