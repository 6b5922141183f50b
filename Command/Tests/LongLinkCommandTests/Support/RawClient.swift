// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A client of plain bytes.
struct RawClient {
  private let descriptor: Int32

  /// Connects from 127.0.0.1, or from another address of the loopback network by its last byte.
  init(port: String, from host: UInt8 = 1) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var result: Int32 = 0
    if host != 1 {
      result = unsafe RawClient.with(port: 0, host: host) { unsafe bind(descriptor, $0, $1) }
    }
    guard result == 0,
      unsafe RawClient.with(
        port: UInt16(port) ?? 0, host: 1, { unsafe connect(descriptor, $0, $1) }) == 0
    else { throw CocoaError(.featureUnsupported) }
    // Reading ends if nothing comes for so long, so that a test fails that would hang.
    var limit = timeval(tv_sec: 300, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    // The system reads the value during the call.
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
  }

  /// Calls a function with an address of the loopback network.
  private static func with(
    port: UInt16, host: UInt8, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = (0x7F00_0000 + UInt32(host)).bigEndian
    // The address outlives the call.
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe call(pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// Its connection, for one who closes it.
  var connection: ScriptedConnection { ScriptedConnection(descriptor: descriptor) }

  /// Sends, and returns what has come when the server has closed.
  @discardableResult
  func sendAndRead(_ bytes: [UInt8]) -> [UInt8] {
    connection.write(bytes)
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while true {
      // The kernel writes at most `count` bytes into an array of so many.
      let count = unsafe buffer.withUnsafeMutableBytes { buffer in
        unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
      }
      guard count > 0 else { break }
      received += buffer[..<count]
    }
    close(descriptor)
    return received
  }

  /// Listens on a free port of 127.0.0.1.
  static func listen() throws -> (descriptor: Int32, port: String) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    // The address outlives each of the calls.
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        guard unsafe bind(listener, pointer, length) == 0, Foundation.listen(listener, 16) == 0
        else { return Int32(-1) }
        return unsafe getsockname(listener, pointer, &length)
      }
    }
    guard result == 0 else { throw CocoaError(.featureUnsupported) }
    return (listener, "\(UInt16(bigEndian: address.sin_port))")
  }
}
