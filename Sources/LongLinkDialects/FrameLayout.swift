// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How the frames of a protocol lie in the bytes: fields in order, described as data.
///
/// A layout is checked when it is made: one that cannot work is refused with the reason. What its
/// numbers mean is said by a ``FrameDialect``.
public struct FrameLayout: Hashable, Sendable {
  /// The fields before and behind a body.
  public struct Shape: Hashable, Sendable {
    /// The fields before the body, in order.
    public let header: [Field]
    /// The fields behind the body, in order; none where frames are delimited.
    public let trailer: [Field]

    /// Makes a shape; it is checked when a layout is made of it.
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

  /// Bytes that stand behind the header, and again behind the body.
  public struct Delimiter: Hashable, Sendable {
    /// What is done about a delimiter inside a body.
    public enum Inside: Hashable, Sendable {
      /// A body may hold it: the length says where the body ends, and the delimiter confirms it.
      case lengthChecked
      /// This byte stands before each of its like, and each first byte of a delimiter, in a body.
      case escaped(UInt8)
      /// A body must not hold it; such a one is not sent.
      case refused
    }

    /// The delimiter: 1 to 8 bytes.
    public let bytes: [UInt8]
    /// The rule for a delimiter inside a body.
    public let inside: Inside

    /// Makes a delimiter; it is checked when a layout is made of it.
    public init(_ bytes: [UInt8], inside: Inside) {
      self.bytes = bytes
      self.inside = inside
    }
  }

  /// The order of the bytes of every integer that has none of its own.
  public let byteOrder: ByteOrder
  /// What a client sends: requests, cancels, heartbeats.
  public let request: Shape
  /// What a server sends: responses, pushes, heartbeats, and requests of its own.
  public let response: Shape
  /// What stands around each body; nil where the length alone tells frames apart.
  public let delimiter: Delimiter?

  /// Makes a layout with a shape for each direction. Throws when it cannot work, naming the field.
  public init(
    byteOrder: ByteOrder = .big, request: Shape, response: Shape, delimiter: Delimiter? = nil
  ) throws(FrameLayoutError) {
    self.byteOrder = byteOrder
    self.request = request
    self.response = response
    self.delimiter = delimiter
    try validate()
  }

  /// Makes a layout that is the same in both directions. Throws when it cannot work.
  public init(
    byteOrder: ByteOrder = .big, both shape: Shape, delimiter: Delimiter? = nil
  ) throws(FrameLayoutError) {
    try self.init(byteOrder: byteOrder, request: shape, response: shape, delimiter: delimiter)
  }

  /// Takes parts that are known to work together.
  init(
    unchecked byteOrder: ByteOrder, request: Shape, response: Shape, delimiter: Delimiter? = nil
  ) {
    self.byteOrder = byteOrder
    self.request = request
    self.response = response
    self.delimiter = delimiter
  }

  /// The shape of what a side sends.
  package func shape(from role: Role) -> Shape { role == .client ? request : response }
}
