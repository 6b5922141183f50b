// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCLibrary
internal import LongLinkTransport
internal import NIOCore

/// The service manager that has started this process, such as systemd: a datagram socket that takes
/// the messages of `sd_notify`. Variables of the environment say where it is, and what it asks for.
final class ServiceManager {
  /// How often it is told that the process lives, twice as often as it has to hear that; nil if it
  /// did not ask for it.
  let watchdog: TimeAmount?
  /// The name of its socket, as the system takes it. NUL begins a name outside the file system.
  private let name: [UInt8]
  private let descriptor: CInt

  /// Finds the service manager; nil if there is none. Throws if its socket cannot be reached.
  init?(_ variable: (String) -> String?) throws(IOError) {
    guard let socket = variable("NOTIFY_SOCKET"), !socket.isEmpty else { return nil }
    switch socket.first {
    case "/": name = Array(socket.utf8)
    case "@": name = [0] + socket.utf8.dropFirst()
    default: throw IOError(errnoCode: EAFNOSUPPORT, reason: "NOTIFY_SOCKET=\(socket)")
    }
    guard name.count <= SocketAddress.longestUnixPath else {
      throw IOError(errnoCode: ENAMETOOLONG, reason: "NOTIFY_SOCKET")
    }
    // A parent's watchdog is not that of this process.
    let isMeant = variable("WATCHDOG_PID").map { $0 == "\(getpid())" } ?? true
    let time = variable("WATCHDOG_USEC").flatMap { Int64($0) } ?? 0
    watchdog = isMeant && time > 1 ? .microseconds(time / 2) : nil
    #if canImport(Darwin)
    descriptor = LongLinkCLibrary.socket(AF_UNIX, SOCK_DGRAM, 0)
    #else
    let type = SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    descriptor = LongLinkCLibrary.socket(AF_UNIX, CInt(type), 0)
    #endif
    if descriptor < 0 { throw IOError(errnoCode: errno, reason: "socket") }
  }

  deinit {
    close(descriptor)
  }

  /// Sends a message, without waiting.
  func tell(_ message: String) throws(IOError) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + name.count)
    let message = Array(message.utf8)
    let sent = unsafe withUnsafeBytes(of: &address) { address in
      unsafe sendto(
        descriptor, message, message.count, CInt(MSG_DONTWAIT),
        address.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
    }
    if sent < 0 { throw IOError(errnoCode: errno, reason: "sendto") }
  }
}
#endif
