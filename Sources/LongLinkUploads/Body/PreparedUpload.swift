// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport

/// The checked parts of an upload. The sizes of their files are known, and from now on the files
/// must not change.
public struct PreparedUpload: Sendable {
  struct Part: Sendable {
    let part: UploadPart
    /// The number of bytes of the part; nil for a sequence without a length.
    let size: UInt64?
    /// The file of the part, and the range of it that is sent; nil for other content.
    let file: (path: String, identity: FileIdentity, range: Range<UInt64>)?
  }

  let parts: [Part]
  let loop: EventLoop
  /// The number of bytes of all parts; nil if a sequence has no length.
  public let length: UInt64?

  /// Returns the bytes from an offset on, in pieces of at most 64 KiB. They can be read any number
  /// of times.
  ///
  /// Reading throws `UploadError` if a file has changed or cannot be read, if a sequence fails or
  /// has another length than it states, or if the offset is past the end. All bytes before the
  /// error are returned first.
  public func pieces(from offset: UInt64 = 0) -> BytePieces<UploadError> {
    BytePieces {
      let reader = BodyReader(self, from: offset)
      return BytePieces.Iterator {
        (actor: isolated (any Actor)?) async throws(UploadError) -> [UInt8]? in
        try await reader.next(isolation: actor)
      }
    }
  }

  /// Throws if a file has changed since the body was prepared.
  func verifyFiles() async throws(UploadError) {
    let parts = parts
    let outcome = await loop.offloading { () -> UploadError? in
      for part in parts {
        guard let file = part.file else { continue }
        do throws(FileError) {
          let now = try FileIdentity(at: file.path)
          if let error = UploadError(now, insteadOf: file.identity, path: file.path) {
            return error
          }
        } catch {
          return UploadError(of: error, at: file.path)
        }
      }
      return nil
    }
    if let outcome { throw outcome }
  }
}

extension PreparedUpload {
  /// Prepares the parts of an upload, in their order: checks them, and opens each file once.
  ///
  /// `loop` provides the threads on which files are opened and read. Throws `UploadError` if a file
  /// is missing, cannot be opened or is not a regular file, and with the code `invalidPart` if a
  /// part is invalid: for instance, its range goes beyond the end of its file.
  public init(
    _ parts: [UploadPart], on loop: EventLoop = .shared
  ) async throws(UploadError) {
    let prepared = try await loop.offloading {
      Result { () throws(UploadError) in
        var prepared: [PreparedUpload.Part] = []
        for (index, part) in parts.enumerated() {
          prepared.append(try PreparedUpload.Part.prepare(part, at: index))
        }
        return prepared
      }
    }.get()
    var length: UInt64? = 0
    for (index, part) in prepared.enumerated() {
      guard let size = part.size, let sum = length else {
        length = nil
        continue
      }
      let (next, overflows) = sum.addingReportingOverflow(size)
      if overflows { throw UploadError(.invalidPart, part: index, detail: "it is too large") }
      length = next
    }
    self.init(parts: prepared, loop: loop, length: length)
  }
}

extension PreparedUpload.Part {
  /// Checks a part, and looks at its file. Blocks.
  fileprivate static func prepare(
    _ part: UploadPart, at index: Int
  ) throws(UploadError) -> PreparedUpload.Part {
    for text in [part.field, part.fileName ?? ""] where text.utf8.contains(0) {
      throw UploadError(.invalidPart, part: index, detail: "its name contains U+0000")
    }
    if let type = part.contentType, !MediaType.isValid(type) {
      throw UploadError(
        .invalidPart, part: index, detail: "its content type is not a media type")
    }
    switch part.content.source {
    case .bytes(let bytes):
      return PreparedUpload.Part(part: part, size: UInt64(bytes.count), file: nil)
    case .sequence(let length, _):
      return PreparedUpload.Part(part: part, size: length, file: nil)
    case .file(let path, let range):
      let identity = try look(at: path)
      let range = range ?? 0..<identity.size
      guard range.upperBound <= identity.size else {
        throw UploadError(
          .invalidPart, path: path, part: index,
          detail: "the range ends at \(range.upperBound), and the file at \(identity.size)")
      }
      return PreparedUpload.Part(
        part: part, size: range.upperBound - range.lowerBound, file: (path, identity, range))
    }
  }

  private static func look(at path: String) throws(UploadError) -> FileIdentity {
    do throws(FileError) {
      // Opens the file, so that a missing permission to read fails now.
      return try OpenFile.read(path).identity
    } catch {
      throw UploadError(of: error, at: path)
    }
  }
}
