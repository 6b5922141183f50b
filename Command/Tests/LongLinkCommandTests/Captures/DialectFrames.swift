// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects

/// Writes the frames of one side of a dialect.
struct DialectFrames {
  private let codec: DialectCodec

  init(_ dialect: FrameDialect, from role: Role) throws {
    let header = dialect.layout.shape(from: role).header
    let width = header.first { $0.meaning == .token }?.width ?? 0
    codec = try DialectCodec(
      dialect, role: role, token: [UInt8](repeating: 0x53, count: role == .client ? width : 0))
  }

  func request(_ type: UInt32, _ serial: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    bytes(FrameHead(.request, tag: type, serial: serial, length: body.count), body)
  }

  /// A successful response to a request of a type.
  func response(to type: UInt32, _ serial: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    bytes(
      FrameHead(.response, tag: 200, serial: serial, about: type, length: body.count), body)
  }

  func push(_ type: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    bytes(FrameHead(.push, tag: type, length: body.count), body)
  }

  func cancel(_ serial: UInt32, of type: UInt32 = 0) -> [UInt8] {
    bytes(FrameHead(.cancel, serial: serial, about: type, length: 0), [])
  }

  private func bytes(_ head: FrameHead, _ body: [UInt8]) -> [UInt8] {
    var queue = ByteQueue()
    queue.append(capacity: codec.room(forBody: body.count)) { span in
      let start = codec.begin(&span)
      body.encode(into: &span)
      _ = codec.finish(head, from: start, in: &span)
    }
    return queue.takeAll()
  }
}
