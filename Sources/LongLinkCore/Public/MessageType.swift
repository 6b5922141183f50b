// SPDX-License-Identifier: Apache-2.0

/// The number that identifies the content of a request or push: 0 to 16,777,215.
public struct MessageType: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
{
  /// The number on the wire, 0 to 16,777,215 (24 bits). Only the type of an endpoint that is not
  /// reached over a link, such as an HTTP endpoint, has a larger number.
  public let rawValue: UInt32

  /// Makes a message type; nil for a number over 16,777,215.
  public init?(rawValue: UInt32) {
    guard rawValue <= Wire.tagMask else { return nil }
    self.rawValue = rawValue
  }

  /// Makes a message type from a literal. Traps if the number is over 16,777,215.
  public init(integerLiteral value: UInt32) {
    precondition(value <= Wire.tagMask, "a message type has 24 bits; \(value) is too large")
    rawValue = value
  }

  package init(tag: UInt32) {
    rawValue = tag & Wire.tagMask
  }

  /// Makes the type of calls that are not carried by a link: a number above those of the wire,
  /// computed from a name. It is the same in every run.
  package init(localName name: String) {
    // FNV-1a.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let first = UInt64(Wire.tagMask) + 1
    rawValue = UInt32(first + hash % (UInt64(UInt32.max) + 1 - first))
  }

  /// The number.
  public var description: String { String(rawValue) }
}
