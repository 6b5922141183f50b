// SPDX-License-Identifier: Apache-2.0

/// Where the bytes of a part come from. They can be read again from any offset.
public struct UploadContent: Sendable {
  enum Source: Sendable {
    case bytes([UInt8])
    case file(path: String, range: Range<UInt64>?)
    case sequence(length: UInt64?, make: @Sendable (UInt64) async throws -> PieceSource)
  }

  let source: Source

  /// Makes content of bytes in memory.
  public static func bytes(_ bytes: some Sequence<UInt8>) -> UploadContent {
    UploadContent(source: .bytes(Array(bytes)))
  }

  /// Makes content of a regular file, or of a range of its bytes, which must not go beyond its end.
  ///
  /// The file is read while it is sent, and must not change meanwhile: its size, its time of
  /// modification and its inode are compared before, during and after the reading. If any differs,
  /// the upload fails.
  public static func file(_ path: String, range: Range<UInt64>? = nil) -> UploadContent {
    UploadContent(source: .file(path: path, range: range))
  }

  /// Makes content of the elements of a sequence, one after the other.
  ///
  /// `make` returns the bytes from an offset on. It is called with 0 first, and again whenever the
  /// bytes have to be read again, for instance after a lost connection. The bytes must be the same
  /// each time. If `length` is not nil, any other number of bytes fails with `wrongLength`. In an
  /// upload, only the last part may have no length.
  public static func sequence<Pieces: AsyncSequence>(
    length: UInt64? = nil, _ make: @escaping @Sendable (_ offset: UInt64) async throws -> Pieces
  ) -> UploadContent
  where
    Pieces: SendableMetatype, Pieces.AsyncIterator: SendableMetatype,
    Pieces.Element: Sequence<UInt8>
  {
    UploadContent(
      source: .sequence(length: length) { offset in
        IteratorSource(try await make(offset).makeAsyncIterator())
      })
  }
}

/// A reader of a sequence's elements, whatever their type is.
class PieceSource {
  func next() async throws -> [UInt8]? { nil }
}

private final class IteratorSource<Iterator: AsyncIteratorProtocol>: PieceSource
where Iterator.Element: Sequence<UInt8> {
  private var iterator: Iterator

  init(_ iterator: Iterator) { self.iterator = iterator }

  override func next() async throws -> [UInt8]? {
    try await iterator.next(isolation: #isolation).map { Array($0) }
  }
}
