/// How a connection's frames stand in its bytes.
///
/// The session deals in `FrameHead` alone; whatever differs on the wire stands behind this
/// seam.
package enum WireFormat: Equatable, Sendable {
  /// The layout of `Protocols/wire.md`: four 32-bit integers in network order.
  case native

  /// Bytes before the body.
  package var headerLength: Int {
    switch self {
    case .native: NativeLayout.headerLength
    }
  }

  /// Reads the header at `bytes`, which must hold `headerLength` bytes.
  @inline(__always)
  package func head(at bytes: UnsafeRawPointer) throws(Violation) -> FrameHead {
    switch self {
    case .native: try unsafe NativeLayout.head(at: bytes)
    }
  }

  /// Whether the frame at `bytes`, whole and with `length` bytes of body, is undamaged.
  @inline(__always)
  package func isIntact(at bytes: UnsafeRawPointer, length: Int) -> Bool {
    switch self {
    case .native: unsafe NativeLayout.isIntact(at: bytes, length: length)
    }
  }

  /// Writes the header, checksum included, in front of a body that already stands behind it.
  @inline(__always)
  package func seal(_ head: FrameHead, at bytes: UnsafeMutableRawPointer) {
    switch self {
    case .native: unsafe NativeLayout.seal(head, at: bytes)
    }
  }
}
