// SPDX-License-Identifier: Apache-2.0

import LongLink

/// A message of one byte, which is pushed with type 40; 255 is no message.
struct Note: PushMessage, Hashable {
  static var pushType: MessageType { 40 }

  var number: UInt8

  init(_ number: UInt8) {
    self.number = number
  }

  var encodedByteCount: Int { 1 }

  func encode(into output: inout OutputRawSpan) {
    output.append(number)
  }

  init(decoding body: RawSpan) throws(BodyError) {
    let bytes = unsafe body.withUnsafeBytes { unsafe [UInt8]($0) }
    guard bytes.count == 1, bytes[0] != 255 else { throw BodyError(.malformed) }
    number = bytes[0]
  }
}
