// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A Swift type for a message whose C structure `protoc-c` generated.
///
/// A conformance defines how its fields are copied to the C structure, which libprotobuf-c packs,
/// and how they are read from a body. `protoc-c` generates `…__init` with the structure:
///
/// ```swift
/// struct FailRequest: ProtobufCBody {
///   var code: UInt32 = 0
///   var detail = ""
///
///   static let layout = unsafe ProtobufCLayout<FailRequest>(
///     initialize: longlink__demo__fail_request__init,
///     fill: { message, value, arena in
///       unsafe message.code = value.code
///       unsafe message.detail = try arena.string(value.detail)
///     },
///     read: { reader in
///       var value = FailRequest()
///       while let field = try reader.next() {
///         switch field {
///         case 1: value.code = try reader.uint32()
///         case 2: value.detail = try reader.string()
///         default: try reader.skip()
///         }
///       }
///       return value
///     }
///   )
/// }
/// ```
public protocol ProtobufCBody: BodyEncodable, BodyDecodable {
  /// The functions that copy a value to its C message and read it from a body.
  static var layout: ProtobufCLayout<Self> { get }
}

extension ProtobufCBody {
  /// The most bytes of memory that decoding one message may take: 64 MiB, unless a type sets its
  /// own.
  ///
  /// A limit is needed because a short body can make many values: an empty message takes two bytes
  /// of a body, and hundreds in memory.
  public static var decodingMemoryLimit: Int { 67_108_864 }

  /// Always true: the C message has to be filled before libprotobuf-c can compute its size.
  @inlinable public static var isMeasuredByEncoding: Bool { true }

  /// The number of bytes of the packed message, as libprotobuf-c computes it.
  ///
  /// Throws the errors of filling the C message, mainly `.interiorNUL`.
  @inlinable
  public var encodedByteCount: Int {
    get throws(BodyError) {
      try withArena(measuresOnly: true) { (arena) throws(BodyError) in
        try Self.layout.packedSize(of: self, in: &arena)
      }
    }
  }

  /// Packs the message directly into `output` with libprotobuf-c. Traps if it has no room there.
  ///
  /// Throws the errors of filling the C message, mainly `.interiorNUL`.
  @inlinable
  public func encode(into output: inout OutputRawSpan) throws(BodyError) {
    unsafe try output.withUnsafeMutableBytes { (buffer, initializedCount) throws(BodyError) in
      // libprotobuf-c writes after the initialized part, which stays unchanged.
      let free = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[initializedCount...])
      initializedCount += try withArena { (arena) throws(BodyError) in
        try unsafe Self.layout.pack(self, into: free, using: &arena)
      }
    }
  }

  /// Packs the message into an array with libprotobuf-c.
  ///
  /// Throws the errors of filling the C message, mainly `.interiorNUL`.
  @inlinable
  public func encodedBytes() throws(BodyError) -> [UInt8] {
    try withArena { (arena) throws(BodyError) in
      try Self.layout.packed(self, in: &arena)
    }
  }

  /// Reads the body within the memory limit of the type; throws like `init(decoding:charging:)`.
  @inlinable
  public init(decoding body: RawSpan) throws(BodyError) {
    var memory = DecodingMemory(for: Self.self)
    try self.init(decoding: body, charging: &memory)
  }

  /// Reads the body, and charges the memory that the value takes.
  ///
  /// A message counts as twice its size in Swift plus 24 bytes, and a number of a repeated field as
  /// 16 bytes. A string of at most 15 bytes and an empty bytes field count as 32 bytes, any longer
  /// one as its length plus 80. These are upper bounds for arrays and dictionaries that grow.
  ///
  /// Throws `malformed`, `truncated` or `wrongType` if the body breaks the rules of Protocol
  /// Buffers or of its message, `tooDeep` if messages are nested more than 100 levels below the
  /// outermost, `invalidUTF8` or `interiorNUL` for a string, `notRepresentable` if a singular
  /// message field occurs twice, `tooLarge` beyond `decodingMemoryLimit`, and `outOfMemory` beyond
  /// what the server has left.
  @inlinable
  public init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
    // The body and the memory outlive this call, and the reader does not.
    let bytes = unsafe body.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    self = try unsafe withUnsafeMutablePointer(to: &memory) { (memory) throws(BodyError) in
      var reader = unsafe ProtobufReader(bytes, charging: memory)
      let value = try Self.layout.read(from: &reader)
      unsafe memory.pointee.end(reader.allowance)
      return value
    }
  }

  /// Calls `body` with the filled C message, which is valid during the call.
  ///
  /// Traps if `CMessage` is not the structure of this message. Throws the errors of filling, mainly
  /// `.interiorNUL`, and of `body`.
  @inlinable
  public func withCMessage<CMessage, Result>(
    as type: CMessage.Type,
    _ body: (UnsafePointer<CMessage>) throws(BodyError) -> Result
  ) throws(BodyError) -> Result {
    try withArena { (arena) throws(BodyError) in
      let layout = Self.layout
      layout.requireMatch(type)
      // The arena, and with it the message, lives until `withArena` returns.
      let message = try unsafe layout.makeMessage(self, in: &arena)
      return try unsafe body(message.assumingMemoryBound(to: type))
    }
  }
}
