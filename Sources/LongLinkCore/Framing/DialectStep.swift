// SPDX-License-Identifier: Apache-2.0

/// A frame of a dialect, in the words of the native protocol.
package struct DialectFrame: Equatable, Sendable {
  /// What it is. The tag is the type of a request or push and the library's code of a response.
  ///
  /// The serial is that of the wire, but for a push, which has that of native pushes. A cancel by
  /// type has the type as its tag and serial 0. A response with a serial that no request can have
  /// has serial 0 where it does not fit into 32 bits.
  package var head: FrameHead
  /// The type field; 0 where there is none, and the largest number for one that is larger.
  package var type: UInt32
  /// The serial field.
  package var serial: UInt64
  /// The code field, as the type field.
  package var code: UInt32
  /// Where the body stands, from the beginning of the bytes that were given.
  package var body: Range<Int>
  /// Bytes of the whole frame.
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

/// What the bytes at the front of a stream are.
package enum DialectStep: Equatable, Sendable {
  /// Nothing yet: there have to be so many bytes, counted from the first.
  case needMore(atLeast: Int)
  /// A whole frame, undamaged.
  case frame(DialectFrame)
  /// A damaged packet, of which so many bytes are to be taken. It is dropped; the link stays.
  case damaged(Int, Violation)
  /// So many bytes are to be taken in search of the next packet; they belong to what was damaged.
  case skipped(Int)
  /// A rule was broken: nothing that follows can be trusted.
  case violation(Violation)
}
