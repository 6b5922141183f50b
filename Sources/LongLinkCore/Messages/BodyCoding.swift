// SPDX-License-Identifier: Apache-2.0

/// A value that can write itself as the body of a frame.
///
/// Both members may be called from any thread and must agree with each other while the value does
/// not change. Neither keeps anything: the bytes go straight into the outgoing frame. So neither
/// may use a client, a server or a connection: on their loop it is called in the middle of that
/// frame, and another frame for the same connection traps there.
public protocol BodyEncodable {
  /// The number of bytes that `encode(into:)` appends.
  ///
  /// Throws where the value has no encoding; `encode(into:)` would throw the same.
  var encodedByteCount: Int { get throws(BodyError) }

  /// Appends exactly `encodedByteCount` bytes to a span that has room for them.
  ///
  /// Where it throws, what it appended is dropped and nothing is sent.
  func encode(into output: inout OutputRawSpan) throws(BodyError)

  /// The body as bytes of its own, where there is no frame to write it into yet.
  ///
  /// Throws what encoding throws. What is provided asks for the count and then encodes; a type that
  /// can do both at once does.
  func encodedBytes() throws(BodyError) -> [UInt8]

  /// Whether `encodedByteCount` costs about as much as encoding does; false unless a type says so.
  ///
  /// Such a value is encoded once, by `encodedBytes()`, instead of being counted before.
  static var isMeasuredByEncoding: Bool { get }
}

/// A value that can be read from the body of a frame.
public protocol BodyDecodable {
  /// Reads the value from a whole body, which is valid during the call alone.
  ///
  /// The bytes come from the network: anything may stand there, and whatever does must lead to a
  /// value or an error. May be called on any thread.
  init(decoding body: RawSpan) throws(BodyError)
}

/// A value that can be both written as a body and read from one.
public typealias BodyCodable = BodyEncodable & BodyDecodable
