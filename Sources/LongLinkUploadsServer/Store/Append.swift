// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// A running append to an upload. Its functions block; only one thread at a time may call them.
final class Append: Sendable {
  let upload: UnfinishedUpload
  private let store: UploadStore
  /// Opened when the append may write no more bytes.
  let stopped = Gate<Void>()
  /// The number of bytes that this append has written.
  private let count = Mutex(0)

  init(_ upload: UnfinishedUpload, _ store: UploadStore) {
    self.upload = upload
    self.store = store
  }

  /// The conflict, if another request has ended this append: a takeover or a removal; nil if none
  /// has.
  var fencing: UploadFailure? {
    let facts = upload.factsNow
    return facts.append === self ? nil : UnfinishedUpload.conflict(facts)
  }

  /// Writes bytes after those that were written before, and returns their number. If that is less
  /// than the piece has, the caller writes the rest in another turn.
  ///
  /// After it has thrown, nothing more may be written. Bytes that were written before stay, unless
  /// another client has taken the upload over.
  func write(_ piece: ArraySlice<UInt8>) throws(UploadFailure) -> Int {
    guard !piece.isEmpty else { return 0 }
    return try upload.work.withLock(of: upload) { work throws(UploadFailure) in
      let facts = upload.factsNow
      guard facts.append === self else { throw UnfinishedUpload.conflict(facts) }
      if work.files == nil {
        work.files = try filing { () throws(FileError) in
          try PartFiles(upload.layout, in: upload.parent.folder(upload.id))
        }
      }
      if let next = work.uncut {
        work.uncut = try filing { () throws(FileError) in
          try work.files?.cut(to: work.written, from: next)
        }
        if work.uncut != nil { return 0 }
      }
      let (admitted, failure) = admit(piece, at: work.written)
      let written = try put(piece.prefix(admitted), &work)
      if let failure, written == admitted { throw failure }
      return written
    }
  }

  /// Returns how many bytes of a piece may be written, and the failure for the byte after them.
  private func admit(
    _ piece: ArraySlice<UInt8>, at offset: UInt64
  ) -> (count: Int, failure: UploadFailure?) {
    let limits = store.limits
    let bounds: [(UInt64, UploadFailure)] = [
      (
        UInt64(limits.maxAppendBytes - count.withLock(of: self) { $0 }),
        .tooLarge("an append has at most \(limits.maxAppendBytes) bytes")
      ),
      (
        upload.mostBytes(limits) - min(offset, upload.mostBytes(limits)),
        .tooLarge("the parts have at most \(upload.mostBytes(limits)) bytes")
      ),
      (
        store.quotas.room(of: upload.principal),
        .noSpace("the unfinished uploads take all space that they may")
      ),
    ]
    var admitted = piece.count
    var failure: UploadFailure?
    for (room, reason) in bounds where UInt64(admitted) > room {
      admitted = Int(room)
      failure = reason
    }
    return (admitted, failure)
  }

  private func put(
    _ piece: ArraySlice<UInt8>, _ work: inout UnfinishedUpload.Work
  ) throws(UploadFailure) -> Int {
    if piece.isEmpty { return 0 }
    guard store.quotas.take(UInt64(piece.count), of: upload.principal) else {
      throw .noSpace("the unfinished uploads take all space that they may")
    }
    let (written, error) = work.files?.write(piece, at: work.written) ?? (0, nil)
    store.quotas.giveBack(UInt64(piece.count - written), of: upload.principal)
    if work.hashed == work.written {
      work.digest.update(piece.prefix(written))
      work.hashed += UInt64(written)
    }
    work.written += UInt64(written)
    count.withLock(of: self) { $0 += written }
    store.counted { $0.bytesWritten += UInt64(written) }
    if let error {
      work.uncut = 0
      throw UploadFailure(error)
    }
    return written
  }

  /// Makes the written bytes durable, and returns the offset after them.
  func end(now: UInt64) throws(UploadFailure) -> UInt64 {
    try upload.work.withLock(of: upload) { work throws(UploadFailure) in
      let facts = upload.factsNow
      guard facts.append === self else { throw UnfinishedUpload.conflict(facts) }
      try filing { () throws(FileError) in
        try upload.endAppend(&work, now: now, lifetime: store.lifetime)
      }
      return upload.factsNow.offset
    }
  }
}

extension UnfinishedUpload {
  /// The most bytes that the upload may have.
  func mostBytes(_ limits: UploadLimits) -> UInt64 {
    if let size = layout.size { return size }
    guard let last = layout.entries.last else { return 0 }
    // A field's value is read into memory at the finish, so its limit is lower.
    guard !last.isFile else { return limits.maxUploadBytes }
    let others = layout.entries.dropLast().reduce(UInt64(0)) {
      $0 + ($1.isFile ? 0 : $1.size ?? 0)
    }
    let most = min(
      UInt64(UploadLimits.mostFieldBytes),
      UploadLimits.mostFieldsBytes - min(others, UploadLimits.mostFieldsBytes))
    return min(limits.maxUploadBytes, last.start + most)
  }
}
