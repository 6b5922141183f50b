// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A Swift value that stands for a message for which `protoc-c` has generated C.
///
/// A conformance says how its fields are copied into those of the C structure, which libprotobuf-c
/// packs, and how they are read from a body. `…__init` is generated with the structure:
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
  /// How the value is made into its C message, and read from a body.
  static var layout: ProtobufCLayout<Self> { get }

  /// The most memory in bytes that a body of `byteCount` bytes may take while it is decoded.
  ///
  /// Decoding throws `.tooLarge` past it. The default is 64 times the body and 64 KiB more, but
  /// beyond 64 MiB no more than four times the body: a body may repeat an empty message, of two
  /// bytes, that takes hundreds. A message counts as its C structure, a number of a repeated field
  /// as 8 bytes, strings and bytes as what they hold and 16 more.
  static func decodingMemoryLimit(forBodyOf byteCount: Int) -> Int
}

extension ProtobufCBody {
  /// The default limit: see the requirement.
  @inlinable
  public static func decodingMemoryLimit(forBodyOf byteCount: Int) -> Int {
    ProtobufReader.memoryLimit(forBodyOf: byteCount)
  }

  /// True: libprotobuf-c counts by what it packs, and the C message has to be filled for either.
  @inlinable public static var isMeasuredByEncoding: Bool { true }

  /// The size that libprotobuf-c computes for the message.
  @inlinable
  public var encodedByteCount: Int {
    get throws(BodyError) {
      try withArena(measuresOnly: true) { (arena) throws(BodyError) in
        try Self.layout.packedSize(of: self, in: &arena)
      }
    }
  }

  /// Lets libprotobuf-c pack the message straight into `output`.
  @inlinable
  public func encode(into output: inout OutputRawSpan) throws(BodyError) {
    unsafe try output.withUnsafeMutableBytes { (buffer, initializedCount) throws(BodyError) in
      // What has been initialised stays as it is; libprotobuf-c writes behind it.
      let free = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[initializedCount...])
      initializedCount += try withArena { (arena) throws(BodyError) in
        try unsafe Self.layout.pack(self, into: free, using: &arena)
      }
    }
  }

  /// Lets libprotobuf-c pack the message into an array.
  @inlinable
  public func encodedBytes() throws(BodyError) -> [UInt8] {
    try withArena { (arena) throws(BodyError) in
      try Self.layout.packed(self, in: &arena)
    }
  }

  /// Reads the body within the memory limit.
  ///
  /// Throws where the body breaks the rules of Protocol Buffers or of its message, is nested deeper
  /// than 100 messages, has a string that is not UTF-8 or contains U+0000, has a singular message
  /// field twice, or needs more memory than `decodingMemoryLimit(forBodyOf:)` says.
  @inlinable
  public init(decoding body: RawSpan) throws(BodyError) {
    let limit = Self.decodingMemoryLimit(forBodyOf: body.byteCount)
    // The body is there as long as this call, and the reader is not there any longer.
    let bytes = unsafe body.withUnsafeBytes { unsafe $0.assumingMemoryBound(to: UInt8.self) }
    var reader = unsafe ProtobufReader(bytes, allowance: limit)
    self = try Self.layout.read(from: &reader)
  }

  /// Lends the filled C message, with all that it points to, for the length of the call.
  ///
  /// Traps where `CMessage` is not the structure of this message. Throws what filling throws,
  /// `.interiorNUL` above all, and what `body` throws.
  @inlinable
  public func withCMessage<CMessage, Result>(
    as type: CMessage.Type,
    _ body: (UnsafePointer<CMessage>) throws(BodyError) -> Result
  ) throws(BodyError) -> Result {
    try withArena { (arena) throws(BodyError) in
      let layout = Self.layout
      layout.requireMatch(type)
      // The arena, and so the message, is there until `withArena` returns.
      let message = try unsafe layout.makeMessage(self, in: &arena)
      return try unsafe body(message.assumingMemoryBound(to: type))
    }
  }
}
