// SPDX-License-Identifier: Apache-2.0

/// Reads the parts of a body one after the other, from an offset on.
final class BodyReader {
  private enum Current {
    /// The part at `index` has not begun.
    case none
    case bytes(ArraySlice<UInt8>)
    case file(FilePieces)
    /// A sequence; `left` is the number of bytes that it still has to return, nil if it has no
    /// length.
    case sequence(PieceSource, left: UInt64?)
  }

  private let body: PreparedUpload
  /// Hashes the bytes of files as they are read.
  private let hash: PrefixHash?
  private var index = 0
  /// The number of bytes to skip at the beginning of the next part.
  private var skipped: UInt64
  private var current = Current.none
  /// The rest of a piece that was larger than `FilePieces.pieceSize`.
  private var rest: ArraySlice<UInt8> = []
  /// The offset of the next piece.
  private(set) var position: UInt64

  init(_ body: PreparedUpload, from offset: UInt64, hash: PrefixHash? = nil) {
    self.body = body
    self.hash = hash
    position = offset
    skipped = offset
    while index < body.parts.count, let size = body.parts[index].size, skipped >= size,
      // The last part is read even if no byte of it is wanted: it may have changed.
      index + 1 < body.parts.count || skipped > size
    {
      skipped -= size
      index += 1
    }
  }

  /// Returns the next piece, which has at least one byte; nil at the end of the body.
  func next(isolation actor: isolated (any Actor)?) async throws(UploadError) -> [UInt8]? {
    while true {
      if !rest.isEmpty { return takeRest() }
      if case .none = current {
        guard index < body.parts.count else {
          guard skipped == 0 else {
            throw UploadError(.wrongLength, detail: "the offset is past the end of the body")
          }
          return nil
        }
        try await begin(isolation: actor)
      }
      if let piece = try await piece(isolation: actor) {
        rest = piece
      } else {
        current = .none
        skipped = 0
        index += 1
      }
    }
  }

  private func takeRest() -> [UInt8] {
    let piece = Array(rest.prefix(FilePieces.pieceSize))
    rest = rest.dropFirst(piece.count)
    position += UInt64(piece.count)
    return piece
  }

  private func begin(isolation actor: isolated (any Actor)?) async throws(UploadError) {
    let part = body.parts[index]
    switch part.part.content.source {
    case .bytes(let bytes):
      current = .bytes(bytes.dropFirst(Int(clamping: skipped)))
    case .file:
      guard let file = part.file else { return }
      current = .file(
        FilePieces(
          path: file.path, identity: file.identity,
          range: (file.range.lowerBound + skipped)..<file.range.upperBound, on: body.loop,
          hash: hash, at: position))
    case .sequence(let length, let make):
      do {
        current = .sequence(try await make(skipped), left: length.map { $0 - skipped })
      } catch {
        throw UploadError(.sourceFailed, part: index, detail: "\(error)")
      }
    }
  }

  /// Returns more of the current part; nil at its end.
  private func piece(
    isolation actor: isolated (any Actor)?
  ) async throws(UploadError) -> ArraySlice<UInt8>? {
    switch current {
    case .none: return nil
    case .bytes(let bytes):
      current = .bytes([])
      return bytes.isEmpty ? nil : bytes
    case .file(let pieces):
      return try await pieces.next().map { $0[...] }
    case .sequence(let source, let left):
      let piece: [UInt8]?
      do {
        piece = try await source.next()
      } catch {
        throw UploadError(.sourceFailed, part: index, detail: "\(error)")
      }
      return try take(piece, of: source, left: left)
    }
  }

  private func take(
    _ piece: [UInt8]?, of source: PieceSource, left: UInt64?
  ) throws(UploadError) -> ArraySlice<UInt8>? {
    guard let left else { return piece.map { $0[...] } }
    guard let piece else {
      if left == 0 { return nil }
      throw UploadError(.wrongLength, part: index, detail: "\(left) bytes are missing")
    }
    guard piece.count <= left else {
      throw UploadError(.wrongLength, part: index, detail: "it has more bytes than it said")
    }
    current = .sequence(source, left: left - UInt64(piece.count))
    return piece[...]
  }
}
