// SPDX-License-Identifier: Apache-2.0

/// The purpose of a frame; the raw value is the six-bit kind of the native layout.
package enum FrameKind: UInt8, CaseIterable, Hashable, Sendable {
  case request = 0x00
  case response = 0x01
  case item = 0x02
  case end = 0x03
  case cancel = 0x04
  case credit = 0x05
  case push = 0x06
  case renewal = 0x07
  case ping = 0x08
  case pong = 0x09
  case hello = 0x0A
  case welcome = 0x0B
  case goaway = 0x0C
  /// Any of 0x30 to 0x3F, which a receiver reads and ignores.
  case ignorable = 0x30

  /// Makes a kind from its six bits; nil for a kind that version 1 does not know.
  @inline(__always)
  package init?(wire value: UInt8) {
    // The kinds of most frames are checked first.
    if value == FrameKind.response.rawValue {
      self = .response
    } else if value == FrameKind.request.rawValue {
      self = .request
    } else if value >= 0x30 {
      self = .ignorable
    } else if let kind = FrameKind(rawValue: value) {
      self = kind
    } else {
      return nil
    }
  }
}

/// The two flag bits of a frame's type field.
package struct FrameFlags: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The message continues in another frame.
  package static let more = FrameFlags(rawValue: 1)
  /// The body begins with a metadata block.
  package static let metadata = FrameFlags(rawValue: 2)
  /// For dialects only and never on the wire: the tag of a response is the dialect's own code.
  package static let ownCode = FrameFlags(rawValue: 4)
}

/// The content of a frame's header, in any layout.
package struct FrameHead: Equatable, Sendable {
  package var kind: FrameKind
  package var flags: FrameFlags
  /// Message type, or response code and refused bit: 24 bits.
  package var tag: UInt32
  package var serial: UInt32
  /// The type of the request that a response or cancel refers to; for dialects only.
  package var about: UInt32
  /// The size of the body in bytes, metadata included.
  package var length: Int

  package init(
    _ kind: FrameKind,
    flags: FrameFlags = [],
    tag: UInt32 = 0,
    serial: UInt32 = 0,
    about: UInt32 = 0,
    length: Int
  ) {
    self.kind = kind
    self.flags = flags
    self.tag = tag
    self.serial = serial
    self.about = about
    self.length = length
  }
}
