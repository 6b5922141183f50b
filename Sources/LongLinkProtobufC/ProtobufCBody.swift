public import LongLinkCore

/// A Swift value that stands for a message for which `protoc-c` has generated C.
///
/// A conformance says how its fields and those of the C structure are copied to each other;
/// packing, checking and unpacking are provided. `…__init` is generated with the structure:
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
///     read: { message in
///       unsafe FailRequest(
///         code: message.code,
///         detail: ProtobufCField.string(message.detail)
///       )
///     }
///   )
/// }
/// ```
public protocol ProtobufCBody: BodyEncodable, BodyDecodable {
  /// How the value and its C message are made of each other.
  static var layout: ProtobufCLayout<Self> { get }

  /// The most memory in bytes that a body of `byteCount` bytes may take while it is decoded.
  ///
  /// Decoding throws `.tooLarge` past it. The default is 64 times the body and 64 KiB more, but
  /// beyond 64 MiB no more than four times the body: libprotobuf-c takes some 50 bytes for every
  /// field that it meets, and a message for each empty message that a body repeats.
  static func decodingMemoryLimit(forBodyOf byteCount: Int) -> Int
}

extension ProtobufCBody {
  /// The default limit: see the requirement.
  @inlinable
  public static func decodingMemoryLimit(forBodyOf byteCount: Int) -> Int {
    // No body is larger than a length on the wire can say, so nothing here can overflow.
    let counted = Int(UInt32(clamping: byteCount))
    return min(counted * 64 + 65_536, max(64 << 20, counted * 4))
  }

  /// The size that libprotobuf-c computes for the message.
  @inlinable
  public var encodedByteCount: Int {
    get throws(BodyError) {
      try withArena(limit: .max, measuresOnly: true) { (arena) throws(BodyError) in
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
      initializedCount += try withArena(limit: .max) { (arena) throws(BodyError) in
        try unsafe Self.layout.pack(self, into: free, using: &arena)
      }
    }
  }

  /// Lets libprotobuf-c pack the message into an array.
  @inlinable
  public func encodedBytes() throws(BodyError) -> [UInt8] {
    try withArena(limit: .max) { (arena) throws(BodyError) in
      try Self.layout.packed(self, in: &arena)
    }
  }

  /// Checks the body, then lets libprotobuf-c unpack it within the memory limit.
  ///
  /// Throws where the body breaks the rules of Protocol Buffers or of its message, is nested deeper
  /// than 100 messages, has a string that is not UTF-8 or contains U+0000, has a singular message
  /// field twice, or needs more memory than `decodingMemoryLimit(forBodyOf:)` says.
  @inlinable
  public init(decoding body: RawSpan) throws(BodyError) {
    let limit = Self.decodingMemoryLimit(forBodyOf: body.byteCount)
    let outcome = unsafe body.withUnsafeBytes { bytes in
      do throws(BodyError) {
        // Bytes that are only read may be seen as bytes.
        let octets = unsafe bytes.assumingMemoryBound(to: UInt8.self)
        let value = try withArena(limit: limit) { (arena) throws(BodyError) in
          try unsafe Self.layout.unpack(octets, using: &arena)
        }
        return Result<Self, BodyError>.success(value)
      } catch {
        return .failure(error)
      }
    }
    self = try outcome.get()
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
    try withArena(limit: .max) { (arena) throws(BodyError) in
      guard let message = try unsafe arena.message(self, as: type) else {
        throw BodyError(.tooLarge)
      }
      // The arena, and so the message, is there until `withArena` returns.
      return try unsafe body(message)
    }
  }
}
