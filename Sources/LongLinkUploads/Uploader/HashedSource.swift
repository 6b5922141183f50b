// SPDX-License-Identifier: Apache-2.0

/// The bytes of an upload, hashed as they are read. Each byte is hashed once, however often it is
/// sent.
final class HashedSource {
  private let body: PreparedUpload
  private var reader: BodyReader
  private let hash = PrefixHash()
  /// The bytes that were read and not yet taken.
  private var rest: ArraySlice<UInt8> = []
  /// The offset of the next byte to take.
  private(set) var position: UInt64 = 0

  init(_ body: PreparedUpload) {
    self.body = body
    reader = BodyReader(body, from: 0, hash: hash)
  }

  var length: UInt64? { body.length }

  /// The hash of all bytes that were read.
  var sha256: [UInt8] { hash.sha256 }

  /// Moves to an offset, and returns whether there are bytes from there on.
  func hasBytes(
    at offset: UInt64, isolation actor: isolated (any Actor)? = #isolation
  ) async throws(UploadError) -> Bool {
    if offset != position {
      rest = []
      // Bytes that this process has not hashed have to be read, even if the server has them.
      position = min(hash.count, offset)
      reader = BodyReader(body, from: position, hash: hash)
      while position < offset {
        guard try await fill(isolation: actor) else {
          throw UploadError(.damaged, detail: "the server has more bytes than there are")
        }
        skip(Int(clamping: offset - position))
      }
    }
    return try await fill(isolation: actor)
  }

  /// Returns at most `limit` of the next bytes. Call `hasBytes` before: it must have returned true.
  func take(upTo limit: Int) -> [UInt8] {
    let piece = Array(rest.prefix(limit))
    skip(limit)
    return piece
  }

  private func skip(_ limit: Int) {
    let count = min(limit, rest.count)
    rest = rest.dropFirst(count)
    position += UInt64(count)
  }

  /// Reads a piece if none is left; returns false at the end of the upload.
  private func fill(isolation actor: isolated (any Actor)?) async throws(UploadError) -> Bool {
    guard rest.isEmpty else { return true }
    guard let piece = try await reader.next(isolation: actor) else { return false }
    rest = piece[...]
    hash.add(piece, at: position)
    return true
  }
}
