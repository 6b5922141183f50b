// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import CZlib
internal import NIOCore

/// Decompresses a body in gzip (RFC 1952) or zlib format. Each call returns one piece, so that no
/// more is in memory.
@safe final class Inflater {
  /// The most bytes of a piece.
  private static let pieceBytes = 65_536
  /// The decompressed size up to which the ratio to the compressed bytes is not limited.
  static let freeBytes = 1_048_576

  private let stream: UnsafeMutablePointer<z_stream>
  private let maxInflation: Int
  private var input = ByteBuffer()
  private var compressed = 0
  private var inflated = 0
  /// Whether a gzip member has begun and has not ended. An empty body has none.
  private var isWithin = false

  init(maxInflation: Int) {
    self.maxInflation = maxInflation
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // The largest window; gzip or zlib is detected.
    let status = unsafe inflateInit2_(
      stream, MAX_WBITS + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib cannot be used: \(status)")
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Adds compressed bytes. Call it only when all earlier ones are used up.
  func add(_ bytes: ByteBuffer) {
    input = bytes
    compressed += bytes.readableBytes
  }

  /// Returns the next piece, which is not empty; nil if more compressed bytes are needed.
  func next() throws(HTTPFailure) -> [UInt8]? {
    while isWithin || input.readableBytes > 0 {
      // A gzip body may have several members.
      if !isWithin { unsafe inflateReset(stream) }
      let (piece, status) = inflate()
      guard [Z_OK, Z_STREAM_END, Z_BUF_ERROR].contains(status) else { throw .damaged }
      isWithin = status != Z_STREAM_END
      inflated += piece.count
      if inflated > Inflater.freeBytes, (inflated - 1) / maxInflation >= compressed {
        throw .inflated(maxInflation)
      }
      if !piece.isEmpty { return piece }
      if isWithin { return nil }
    }
    return nil
  }

  private func inflate() -> ([UInt8], Int32) {
    let most = Inflater.pieceBytes
    return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: most) { piece in
      var status = Z_OK
      // The pointers are valid only during the call.
      unsafe input.readWithUnsafeMutableReadableBytes { bytes in
        unsafe stream.pointee.next_in = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        unsafe stream.pointee.avail_in = UInt32(bytes.count)
        unsafe stream.pointee.next_out = piece.baseAddress
        unsafe stream.pointee.avail_out = UInt32(most)
        status = unsafe CZlib.inflate(stream, Z_NO_FLUSH)
        return unsafe bytes.count - Int(stream.pointee.avail_in)
      }
      let count = unsafe most - Int(stream.pointee.avail_out)
      return unsafe (Array(piece[..<count]), status)
    }
  }

  /// Throws if the body ended before its compressed format did.
  func finish() throws(HTTPFailure) {
    if isWithin { throw .truncated }
  }

  static func problem(_ most: Int) -> String {
    """
    the body has more than \(freeBytes) bytes, and is more than \(most) times larger than its \
    compressed bytes; raise maxInflation
    """
  }
}
#endif
