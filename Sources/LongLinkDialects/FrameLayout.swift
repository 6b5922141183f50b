// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The layout of a protocol's frames: the fields around their bodies, in order.
///
/// Making a layout checks it, and throws a ``FrameLayoutError`` if it cannot work. A
/// ``FrameDialect`` says what the types, serials and codes in the fields mean.
public struct FrameLayout: Hashable, Sendable {
  /// The fields before and after a body, at most 1,024 bytes each.
  public struct Shape: Hashable, Sendable {
    /// The fields before the body, in order.
    public let header: [Field]
    /// The fields after the body, in order. It must be empty if the layout has a delimiter.
    public let trailer: [Field]

    /// Makes a shape; it is checked when a layout is made from it.
    public init(header: [Field], trailer: [Field] = []) {
      self.header = header
      self.trailer = trailer
    }

    var headerLength: Int { header.reduce(0) { $0 + $1.width } }
    var trailerLength: Int { trailer.reduce(0) { $0 + $1.width } }
    var fields: [Field] { header + trailer }

    func field(_ isMeant: (Field.Meaning) -> Bool) -> Field? {
      fields.first { isMeant($0.meaning) }
    }
  }

  /// The bytes that mark the end of the header and the end of the body.
  public struct Delimiter: Hashable, Sendable {
    /// The rule for a delimiter inside a body.
    package enum Inside: Hashable, Sendable {
      /// A body can contain it: the length determines the body's end, and the delimiter confirms
      /// it.
      case lengthChecked
      /// In a body, this byte precedes each byte equal to it or to the delimiter's first byte.
      case escaped(UInt8)
      /// A body must not contain it; such a body is not sent.
      case refused
    }

    /// The delimiter: 1 to 8 bytes.
    public let bytes: [UInt8]
    /// The rule for a delimiter inside a body.
    package let inside: Inside

    package init(_ bytes: [UInt8], inside: Inside) {
      self.bytes = bytes
      self.inside = inside
    }

    /// Makes a delimiter that a body can contain: the length determines the body's end, and the
    /// delimiter confirms it. The header needs a length. The delimiter is checked when a layout is
    /// made from it.
    public static func lengthChecked(_ bytes: [UInt8]) -> Delimiter {
      Delimiter(bytes, inside: .lengthChecked)
    }

    /// Makes a delimiter that is escaped in a body: the byte `escape` precedes each byte equal to
    /// it or to the delimiter's first byte. The delimiter must not contain `escape`, and a length
    /// must count only the body, as it is without escapes. It is checked when a layout is made from
    /// it.
    public static func escaped(_ bytes: [UInt8], by escape: UInt8) -> Delimiter {
      Delimiter(bytes, inside: .escaped(escape))
    }

    /// Makes a delimiter that a body must not contain: sending such a body fails. It is checked
    /// when a layout is made from it.
    public static func refused(_ bytes: [UInt8]) -> Delimiter {
      Delimiter(bytes, inside: .refused)
    }
  }

  /// The byte order of the integer fields that have none of their own. Default `big`.
  public let byteOrder: ByteOrder
  /// The shape of a client's frames: requests, cancels, pings, pushes, and responses to the
  /// server's requests.
  public let request: Shape
  /// The shape of a server's frames: responses, pushes, pings, and its own requests and cancels.
  public let response: Shape
  /// The delimiter around each body; nil if only the length separates frames.
  public let delimiter: Delimiter?

  /// Makes a layout with a shape for each direction. Throws `FrameLayoutError`, which names the
  /// wrong field, if it cannot work.
  public init(
    byteOrder: ByteOrder = .big, request: Shape, response: Shape, delimiter: Delimiter? = nil
  ) throws(FrameLayoutError) {
    self.byteOrder = byteOrder
    self.request = request
    self.response = response
    self.delimiter = delimiter
    try validate()
  }

  /// Makes a layout that is the same in both directions. Throws `FrameLayoutError`, which names the
  /// wrong field, if it cannot work.
  public init(
    byteOrder: ByteOrder = .big, both shape: Shape, delimiter: Delimiter? = nil
  ) throws(FrameLayoutError) {
    try self.init(byteOrder: byteOrder, request: shape, response: shape, delimiter: delimiter)
  }

  /// The shape of a side's frames.
  package func shape(from role: Role) -> Shape { role == .client ? request : response }
}
