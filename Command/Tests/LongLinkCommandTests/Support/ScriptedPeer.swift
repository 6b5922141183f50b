// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore

/// A server of one connection that does what a script says, over plain sockets.
struct ScriptedPeer {
  let port: String

  /// Listens; once a client has come, `script` is run on a thread of its own, and then closes.
  init(_ script: @escaping @Sendable (ScriptedConnection) -> Void) throws {
    let listener: Int32
    (listener, port) = try RawClient.listen()
    Thread.detachNewThread {
      let connection = ScriptedConnection(descriptor: accept(listener, nil, nil))
      script(connection)
      close(connection.descriptor)
      close(listener)
    }
  }
}

/// What a script does with its connection. What a client that has gone makes fail is passed over.
struct ScriptedConnection {
  let descriptor: Int32

  /// Reads a whole frame and returns its kind; nil at the end of the stream.
  @discardableResult
  func read() -> UInt8? { readFrame()?.kind }

  /// Reads a whole frame and returns its kind and tag; nil at the end of the stream.
  func readFrame() -> (kind: UInt8, tag: UInt32)? {
    guard let header = read(16) else { return nil }
    let length = header[8..<12].reduce(0) { $0 << 8 | Int($1) }
    guard read(length) != nil else { return nil }
    return (header[0] & 0x3F, header[1..<4].reduce(0) { $0 << 8 | UInt32($1) })
  }

  private func read(_ count: Int) -> [UInt8]? {
    guard count > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: count)
    // The kernel writes at most `count` bytes into an array of so many.
    let received = unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_WAITALL))
    }
    return received == count ? bytes : nil
  }

  /// Sends bytes as they stand.
  func write(_ bytes: [UInt8]) {
    // The array lives for as long as the call.
    _ = unsafe bytes.withUnsafeBytes { buffer in
      unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// Reads the hello and answers it with a welcome, an empty one unless told otherwise.
  func greet(agreeing body: [UInt8] = []) {
    read()
    write(ScriptedConnection.frame(kind: 0x0B, tag: 0, serial: 3, body: body))
  }

  /// Waits until the client has closed.
  func readToEnd() {
    while read() != nil {}
  }

  /// A frame with the right checksum.
  static func frame(kind: UInt32, tag: UInt32, serial: UInt32, body: [UInt8] = []) -> [UInt8] {
    var header: [UInt8] = []
    for word in [kind << 24 | tag, serial, UInt32(body.count)] { header += bytes(of: word) }
    let covered = header + body
    // The span does not outlive the call.
    let checksum = unsafe Adler32.checksum(of: covered.span.bytes)
    return header + bytes(of: checksum) + body
  }

  private static func bytes(of word: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
  }
}
