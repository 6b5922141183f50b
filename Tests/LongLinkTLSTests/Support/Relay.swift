// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Passes bytes between clients and a server over loopback, and keeps all of them.
final class Relay: Sendable {
  let port: UInt16
  private let target: UInt16
  private let listener: Int32
  /// What each direction of each connection carried.
  private let recorded = Mutex<[[UInt8]]>([])

  init(to target: UInt16) throws {
    self.target = target
    (listener, port) = try Relay.listen()
    Thread.detachNewThread { [self] in
      while case let near = accept(listener, nil, nil), near >= 0 { carry(near) }
    }
  }

  /// All that was seen, one array for each direction of each connection.
  var capture: [[UInt8]] { recorded.withLock { $0 } }

  /// Takes no more connections.
  func close() {
    shutdown(listener, Int32(SHUT_RDWR))
    Glibc.close(listener)
  }

  /// A port that was free a moment ago.
  static func freePort() throws -> UInt16 {
    let (listener, port) = try listen()
    Glibc.close(listener)
    return port
  }

  private static func listen() throws -> (descriptor: Int32, port: UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    // The address outlives each of the calls.
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        guard unsafe bind(listener, pointer, length) == 0, Glibc.listen(listener, 16) == 0 else {
          return Int32(-1)
        }
        return unsafe getsockname(listener, pointer, &length)
      }
    }
    guard result == 0 else { throw CocoaError(.featureUnsupported) }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private func carry(_ near: Int32) {
    let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Relay.loopback(target)
    // The address outlives the call.
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe connect(far, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      Glibc.close(near)
      Glibc.close(far)
      return
    }
    let index = recorded.withLock { recorded in
      recorded += [[], []]
      return recorded.count - 2
    }
    let ends = Ends(near, far)
    Thread.detachNewThread { self.pump(from: near, to: far, index, ends) }
    Thread.detachNewThread { self.pump(from: far, to: near, index + 1, ends) }
  }

  /// Closes both sockets once neither direction needs them.
  private final class Ends: Sendable {
    private let near: Int32
    private let far: Int32
    private let directions = Mutex(2)

    init(_ near: Int32, _ far: Int32) {
      (self.near, self.far) = (near, far)
    }

    func end() {
      let left = directions.withLock { left in
        left -= 1
        return left
      }
      guard left == 0 else { return }
      Glibc.close(near)
      Glibc.close(far)
    }
  }

  private func pump(from: Int32, to: Int32, _ index: Int, _ ends: Ends) {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      // The kernel writes at most as many bytes as the array has.
      let count = unsafe buffer.withUnsafeMutableBytes { buffer in
        unsafe recv(from, buffer.baseAddress, buffer.count, 0)
      }
      guard count > 0 else { break }
      let bytes = Array(buffer[..<count])
      recorded.withLock { $0[index] += bytes }
      var sent = 0
      while sent < count {
        let part = unsafe bytes[sent...].withUnsafeBytes { buffer in
          unsafe send(to, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
        }
        guard part > 0 else { break }
        sent += part
      }
    }
    shutdown(to, Int32(SHUT_WR))
    ends.end()
  }
}
