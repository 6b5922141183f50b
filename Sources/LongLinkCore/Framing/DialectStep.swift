// SPDX-License-Identifier: Apache-2.0

/// A frame of a dialect, translated to the terms of the native protocol.
package struct DialectFrame: Equatable, Sendable {
  /// The frame's header in native terms. The tag is the type of a request or push, or the library's
  /// response code.
  ///
  /// The serial is the one on the wire, except that a push has the serial of native pushes. A
  /// cancel by type has the type as its tag and serial 0. The serial of a response is 0 if it does
  /// not fit into 32 bits; no request can have such a serial.
  package var head: FrameHead
  /// The frame's type field: 0 if there is none, clamped to 32 bits.
  package var type: UInt32
  /// The frame's serial field.
  package var serial: UInt64
  /// The frame's code field: 0 if there is none, clamped to 32 bits.
  package var code: UInt32
  /// The body's position, from the start of the decoded bytes.
  package var body: Range<Int>
  /// The size of the whole frame in bytes.
  package var length: Int

  package init(
    head: FrameHead, type: UInt32, serial: UInt64, code: UInt32, body: Range<Int>, length: Int
  ) {
    self.head = head
    self.type = type
    self.serial = serial
    self.code = code
    self.body = body
    self.length = length
  }
}

/// The result of decoding the front of a stream.
package enum DialectStep: Equatable, Sendable {
  /// There is no complete frame: at least this many bytes are needed, counted from the front.
  case needMore(atLeast: Int)
  /// A complete, undamaged frame.
  case frame(DialectFrame)
  /// A damaged packet. The given number of bytes is dropped; the connection stays open.
  case damaged(Int, Violation)
  /// The given number of bytes is dropped in search of the next packet, after a damaged one.
  case skipped(Int)
  /// A protocol violation: nothing that follows can be trusted.
  case violation(Violation)
}
