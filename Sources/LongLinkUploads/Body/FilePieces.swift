// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// The pieces of a range of a file, read off the loop, at most two ahead of the next one to be
/// taken.
///
/// A read fails if the file has changed since the upload was prepared.
final class FilePieces: Sendable {
  /// The most bytes of a piece.
  static let pieceSize = 65_536
  /// The most pieces that are read before they are taken.
  static let mostAhead = 2

  private typealias Piece = Result<[UInt8], UploadError>

  private struct State {
    var ready: [Piece] = []
    var isReading = false
    /// Whether nothing follows the pieces that are ready.
    var isOver = false
    var waiter: Waiter<Void>?
  }

  private struct Position {
    var file: OpenFile?
    var offset: UInt64
  }

  private let path: String
  private let identity: FileIdentity
  private let start: UInt64
  private let end: UInt64
  /// Hashes the pieces, off the loop, before they can be taken.
  private let hash: PrefixHash?
  /// The offset of the range in the upload.
  private let base: UInt64
  private let loop: EventLoop
  private let state = Mutex(State())
  /// The reader's position; only the thread that reads uses it.
  private let position: Mutex<Position>

  /// `base` is the offset of the range in the upload, which the hash needs.
  init(
    path: String, identity: FileIdentity, range: Range<UInt64>, on loop: EventLoop,
    hash: PrefixHash? = nil, at base: UInt64 = 0
  ) {
    self.path = path
    self.identity = identity
    self.loop = loop
    self.hash = hash
    self.base = base
    start = range.lowerBound
    end = range.upperBound
    position = Mutex(Position(offset: range.lowerBound))
  }

  /// Returns the next piece; nil at the end of the range.
  func next() async throws(UploadError) -> [UInt8]? {
    while true {
      let (piece, isOver, reads) = state.withLock(of: self) { state -> (Piece?, Bool, Bool) in
        let piece = state.ready.isEmpty ? nil : state.ready.removeFirst()
        let reads =
          !state.isOver && !state.isReading && state.ready.count < FilePieces.mostAhead
        if reads { state.isReading = true }
        return (piece, state.isOver, reads)
      }
      if reads { await loop.run { [self] in loop.offload { self.readAhead() } } }
      if let piece { return try piece.get() }
      if isOver { return nil }
      await suspend { (waiter: Waiter<Void>) in
        let isReady = state.withLock(of: self) { state in
          if state.ready.isEmpty, !state.isOver { state.waiter = waiter }
          return !state.ready.isEmpty || state.isOver
        }
        if isReady { waiter(()) }
      }
    }
  }

  /// The number of pieces that were read and not yet taken.
  var ahead: Int { state.withLock(of: self) { $0.ready.count } }

  /// Reads until `mostAhead` pieces are ready or the range ends. Blocks.
  private func readAhead() {
    while true {
      let piece = position.withLock(of: self) { position in
        Result { () throws(UploadError) in try readPiece(&position) }
      }
      let (waiter, goesOn) = state.withLock(of: self) { state -> (Waiter<Void>?, Bool) in
        switch piece {
        case .success(nil): state.isOver = true
        case .success(let bytes?): state.ready.append(.success(bytes))
        case .failure(let error):
          state.ready.append(.failure(error))
          state.isOver = true
        }
        state.isReading = !state.isOver && state.ready.count < FilePieces.mostAhead
        return (state.waiter.take(), state.isReading)
      }
      waiter?(())
      if !goesOn { return }
    }
  }

  /// Reads the next piece; nil after the last one.
  private func readPiece(_ position: inout Position) throws(UploadError) -> [UInt8]? {
    do {
      let file = try position.file ?? OpenFile.read(path)
      position.file = file
      try check(file.identity)
      let count = Int(min(UInt64(FilePieces.pieceSize), end - position.offset))
      guard count > 0 else {
        // The path may name another file by now.
        try check(FileIdentity(at: path))
        return nil
      }
      let bytes = try file.read(count, at: position.offset)
      try check(file.identity)
      guard bytes.count == count else { throw UploadError(.fileShrank, path: path) }
      hash?.add(bytes, at: base + position.offset - start)
      position.offset += UInt64(count)
      return bytes
    } catch let failure as FileError {
      throw UploadError(of: failure, at: path)
    } catch {
      throw error as? UploadError ?? UploadError(.fileUnreadable, path: path)
    }
  }

  private func check(_ now: FileIdentity) throws(UploadError) {
    if let error = UploadError(now, insteadOf: identity, path: path) { throw error }
  }
}
