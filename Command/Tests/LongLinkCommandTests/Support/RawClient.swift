// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A client of plain bytes.
struct RawClient {
  private let descriptor: Int32

  init(port: String) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = (UInt16(port) ?? 0).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // The address outlives the call.
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw CocoaError(.featureUnsupported) }
  }

  /// Its connection, for one who closes it.
  var connection: ScriptedConnection { ScriptedConnection(descriptor: descriptor) }

  /// Sends, and returns when the server has closed.
  func sendAndReadToEnd(_ bytes: [UInt8]) {
    connection.write(bytes)
    var byte: UInt8 = 0
    while unsafe recv(descriptor, &byte, 1, 0) > 0 {}
    close(descriptor)
  }
}
