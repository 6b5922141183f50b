// SPDX-License-Identifier: Apache-2.0

/// The bytes of an upload, hashed as they are read: each once, however often it is sent.
final class HashedSource {
  private let body: PreparedUpload
  private var reader: BodyReader
  private let hash = PrefixHash()
  /// What was read and not taken.
  private var rest: ArraySlice<UInt8> = []
  /// The offset of the next byte that is taken.
  private(set) var position: UInt64 = 0

  init(_ body: PreparedUpload) {
    self.body = body
    reader = BodyReader(body, from: 0, hash: hash)
  }

  var length: UInt64? { body.length }

  /// The hash of all bytes that were read.
  var sha256: [UInt8] { hash.sha256 }

  /// Whether there are bytes at an offset.
  func hasBytes(
    at offset: UInt64, isolation actor: isolated (any Actor)? = #isolation
  ) async throws(UploadError) -> Bool {
    if offset != position {
      rest = []
      // What this process has not hashed has to be read, although the server has it.
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

  /// Returns some of the next bytes, at most `limit`. They have to be there.
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

  /// Reads a piece if there is none; returns false at the end.
  private func fill(isolation actor: isolated (any Actor)?) async throws(UploadError) -> Bool {
    guard rest.isEmpty else { return true }
    guard let piece = try await reader.next(isolation: actor) else { return false }
    rest = piece[...]
    hash.add(piece, at: position)
    return true
  }
}
