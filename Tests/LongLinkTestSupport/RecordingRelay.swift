// SPDX-License-Identifier: Apache-2.0

import Foundation
package import LongLinkCore
import Synchronization

/// Carries connections to a server, and keeps what both sides have sent, in the order it came.
package final class RecordingRelay: Sendable {
  package let port: UInt16
  private let target: UInt16
  private let listener: Int32
  private let recorded = Mutex<[[(sender: Role, bytes: [UInt8])]]>([])

  package init(to target: UInt16) throws {
    self.target = target
    (listener, port) = try RecordingRelay.listen()
    Thread.detachNewThread { [self] in
      while case let near = accept(listener, nil, nil), near >= 0 { carry(near) }
    }
  }

  /// Takes no more connections. Those that there are go on to their ends.
  package func close() {
    shutdown(listener, Int32(SHUT_RDWR))
    Glibc.close(listener)
  }

  /// What was sent on each connection.
  package var connections: [[(sender: Role, bytes: [UInt8])]] { recorded.withLock { $0 } }

  /// All that each side has sent on each connection.
  package var capture: [[UInt8]] {
    connections.flatMap { pieces in
      [Role.client, .server].map { side in
        pieces.filter { $0.sender == side }.flatMap(\.bytes)
      }
    }
  }

  /// A port that was free a moment ago.
  package static func freePort() throws -> UInt16 {
    let (listener, port) = try listen()
    Glibc.close(listener)
    return port
  }

  private static func listen() throws -> (descriptor: Int32, port: UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = address(0)
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

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private func carry(_ near: Int32) {
    let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = RecordingRelay.address(target)
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
      recorded.append([])
      return recorded.count - 1
    }
    let open = Open(near: near, far: far)
    Thread.detachNewThread { self.pump(from: near, to: far, .client, index, open) }
    Thread.detachNewThread { self.pump(from: far, to: near, .server, index, open) }
  }

  /// Closes both sides once neither direction needs them.
  private final class Open: Sendable {
    private let near: Int32
    private let far: Int32
    private let directions = Mutex(2)

    init(near: Int32, far: Int32) {
      self.near = near
      self.far = far
    }

    func end() {
      guard
        directions.withLock({
          $0 -= 1; return $0 == 0
        })
      else { return }
      Glibc.close(near)
      Glibc.close(far)
    }
  }

  private func pump(from: Int32, to: Int32, _ sender: Role, _ index: Int, _ open: Open) {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      // The kernel writes at most as many bytes as the array has.
      let count = unsafe buffer.withUnsafeMutableBytes { buffer in
        unsafe recv(from, buffer.baseAddress, buffer.count, 0)
      }
      guard count > 0 else { break }
      let bytes = Array(buffer[..<count])
      // Recorded before it is sent on: an answer cannot stand in front of its request.
      recorded.withLock { $0[index].append((sender, bytes)) }
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
    open.end()
  }
}
