// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import Foundation
import LongLinkServer
import Synchronization

/// Storage in which messages outlive the server.
protocol MessageLog: Sendable {
  /// All messages, in order.
  func load() throws -> [Message]
  /// Stores another message; it is on the disk when this returns.
  func append(_ message: Message) throws
}

/// A file of messages, each after its length in four bytes.
final class FileLog: MessageLog {
  private struct State {
    let file: FileHandle
    /// The end of the last whole message.
    var end: UInt64 = 0
  }

  private let state: Mutex<State>

  init(path: String) throws {
    if !FileManager.default.fileExists(atPath: path) {
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }
    state = Mutex(State(file: try FileHandle(forUpdating: URL(filePath: path))))
  }

  func load() throws -> [Message] {
    try state.withLock { state in
      try state.file.seek(toOffset: 0)
      var rest = [UInt8](try state.file.readToEnd() ?? Data())[...]
      var messages: [Message] = []
      // A crash may have truncated the last one: it got no response, so its client sends it again.
      while rest.count >= 4 {
        let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard rest.count >= 4 + length else { break }
        let body = Array(rest.dropFirst(4).prefix(length))
        messages.append(try Message(decoding: body.span.bytes))
        rest = rest.dropFirst(4 + length)
        state.end += UInt64(4 + length)
      }
      return messages
    }
  }

  func append(_ message: Message) throws {
    let body = try message.encodedBytes()
    let length = withUnsafeBytes(of: UInt32(body.count).bigEndian) { Array($0) }
    try state.withLock { state in
      // Overwrites what a failed write may have left.
      try state.file.truncate(atOffset: state.end)
      try state.file.seek(toOffset: state.end)
      try state.file.write(contentsOf: Data(length + body))
      try state.file.synchronize()
      state.end += UInt64(4 + body.count)
    }
  }
}
