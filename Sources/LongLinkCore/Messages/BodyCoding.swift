// SPDX-License-Identifier: Apache-2.0

/// A type whose values can be written as the body of a frame.
///
/// The members can be called from any thread and must agree with each other while the value does
/// not change. The bytes go straight into the outgoing frame. So the members must not use a client,
/// a server or a connection: starting another frame on the same connection traps.
public protocol BodyEncodable {
  /// The number of bytes that `encode(into:)` appends.
  ///
  /// Throws if the value has no encoding; `encode(into:)` would throw the same error.
  var encodedByteCount: Int { get throws(BodyError) }

  /// Appends exactly `encodedByteCount` bytes to a span that has room for them. Sending a body of
  /// another length traps.
  ///
  /// If it throws, the appended bytes are dropped and nothing is sent.
  func encode(into output: inout OutputRawSpan) throws(BodyError)

  /// Returns the body as an array, for use before there is a frame to write it into.
  ///
  /// Throws the errors of encoding. The default implementation gets the count and then encodes;
  /// implement this function if a type can do both in one step.
  func encodedBytes() throws(BodyError) -> [UInt8]

  /// Whether `encodedByteCount` costs about as much as encoding; false by default.
  ///
  /// If so, the value is encoded once, by `encodedBytes()`, instead of being counted first.
  static var isMeasuredByEncoding: Bool { get }
}

/// A type whose values can be read from the body of a frame.
public protocol BodyDecodable {
  /// Reads the value from a whole body, which is valid only during the call.
  ///
  /// The bytes come from the network and cannot be trusted: any input must result in a value or an
  /// error. Can be called on any thread.
  init(decoding body: RawSpan) throws(BodyError)

  /// Reads the value from a whole body, and takes the memory for it from `memory` before
  /// allocating.
  ///
  /// Requests, responses, pushes and items are decoded by this function. As an estimate, the
  /// default implementation takes eight times the bytes of the body, but at most 4 MiB more than
  /// its bytes. Implement the function for a type whose values can take much more.
  init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError)

  /// The most memory in bytes that decoding one body may take; above zero. Beyond it, decoding
  /// throws `tooLarge`. Default: `Int.max`, so that only the limits on the body's size and on a
  /// server's memory apply.
  static var decodingMemoryLimit: Int { get }
}
