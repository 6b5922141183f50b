internal import CProtobufC
public import LongLinkCore

/// Lends an arena whose first kilobyte is on the stack.
@inlinable
func withArena<Result>(
  limit: Int,
  measuresOnly: Bool = false,
  _ body: (inout ProtobufCArena) throws(BodyError) -> Result
) throws(BodyError) -> Result {
  try unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) {
    (first) throws(BodyError) -> Result in
    // The arena ends before the memory that it begins with.
    var arena = unsafe ProtobufCArena(first: first, limit: limit, measuresOnly: measuresOnly)
    return try body(&arena)
  }
}

extension ProtobufCArena {
  /// Unpacks a body that was checked. The message lives as long as the arena.
  @usableFromInline
  mutating func unpack(
    _ body: UnsafeBufferPointer<UInt8>,
    as message: MessageDescription
  ) throws(BodyError) -> UnsafeRawPointer {
    let unpacked = unsafe withUnsafeMutablePointer(to: &self) { arena in
      // libprotobuf-c uses the allocator, and so the arena, during this call alone.
      var allocator = unsafe ProtobufCAllocator(
        alloc: { arena, byteCount in
          unsafe arena?.assumingMemoryBound(to: ProtobufCArena.self).pointee.allocate(byteCount)
        },
        free: { _, _ in },
        allocator_data: arena
      )
      return unsafe protobuf_c_message_unpack(
        message.descriptor,
        &allocator,
        body.count,
        body.baseAddress
      )
    }
    guard let unpacked = unsafe unpacked else {
      throw isExhausted
        ? BodyError(.tooLarge, detail: "decoding needs more memory than it may have")
        : BodyError(.malformed, detail: "a required field is missing")
    }
    return UnsafeRawPointer(unpacked)
  }
}
