// SPDX-License-Identifier: Apache-2.0

/// The header of `Protocols/wire.md`: type, serial, length and Adler-32, in network byte order.
package enum NativeLayout {
  /// The number of bytes before the body.
  package static let headerLength = 16

  @inline(__always)
  private static func load(_ bytes: UnsafeRawPointer, _ offset: Int) -> UInt32 {
    // The caller guarantees 16 bytes; an unaligned load of a trivial type is sound.
    UInt32(bigEndian: unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inline(__always)
  private static func store(_ value: UInt32, _ bytes: UnsafeMutableRawPointer, _ offset: Int) {
    // The 16 bytes are guaranteed by the caller; an unaligned store of a trivial type is sound.
    unsafe bytes.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
  }

  /// Reads the header at `bytes`, which must hold `headerLength` bytes.
  @inline(__always)
  package static func head(at bytes: UnsafeRawPointer) throws(Violation) -> FrameHead {
    let word = unsafe load(bytes, 0)
    let serial = unsafe load(bytes, 4)
    let byte = UInt8(truncatingIfNeeded: (word >> 24) & 0x3F)
    guard let kind = FrameKind(wire: byte) else {
      throw Violation(.unknownKind, kind: byte, serial: serial)
    }
    return FrameHead(
      kind,
      flags: FrameFlags(rawValue: UInt8(truncatingIfNeeded: word >> 30)),
      tag: word & Wire.tagMask,
      serial: serial,
      length: Int(unsafe load(bytes, 8))
    )
  }

  /// Whether the checksum of the complete frame at `bytes`, with `length` bytes of body, matches.
  @inline(__always)
  package static func isIntact(at bytes: UnsafeRawPointer, length: Int) -> Bool {
    unsafe Adler32.checksum(ofFrame: bytes, bodyLength: length) == load(bytes, 12)
  }

  /// Writes the header, including the checksum, in front of a body that is already in place.
  @inline(__always)
  package static func seal(_ head: FrameHead, at bytes: UnsafeMutableRawPointer) {
    let word =
      UInt32(head.flags.rawValue) << 30 | UInt32(head.kind.rawValue) << 24 | head.tag
    unsafe store(word, bytes, 0)
    unsafe store(head.serial, bytes, 4)
    unsafe store(UInt32(head.length), bytes, 8)
    unsafe store(Adler32.checksum(ofFrame: bytes, bodyLength: head.length), bytes, 12)
  }
}
