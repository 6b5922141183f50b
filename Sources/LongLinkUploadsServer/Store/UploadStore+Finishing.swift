// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// A running finish, which compares an upload's bytes with the client's hash. Its functions block.
struct Finishing: Sendable {
  /// The most bytes that one call hashes.
  private static let step = 4 << 20
  private static let pieceSize = 1 << 18

  let upload: UnfinishedUpload
  let request: FinishRequest
  /// Tells this finish from others of the same upload.
  let number: UInt64

  /// Hashes some of the bytes that were not hashed yet; returns whether there are more.
  ///
  /// Usually all were hashed as they arrived. After a restart they are read again.
  func hashMore() throws(UploadFailure) -> Bool {
    try upload.work.withLock(of: upload) { work throws(UploadFailure) in
      try check()
      guard work.hashed < work.written else { return false }
      let end = min(work.written, work.hashed + UInt64(Self.step))
      do throws(FileError) {
        var files = try PartFiles(upload.layout, in: upload.parent.folder(upload.id))
        var buffer = [UInt8](repeating: 0, count: Self.pieceSize)
        while work.hashed < end {
          let count = try files.read(into: &buffer, at: work.hashed, end: end)
          if count == 0 { throw FileError("read", upload.id, errno: FileError.damaged) }
          work.digest.update(buffer[..<count])
          work.hashed += UInt64(count)
        }
      } catch {
        giveUp()
        throw UploadFailure(error)
      }
      return work.hashed < work.written
    }
  }

  /// Whether this finish is still running: a takeover ends it, and another finish may have begun
  /// since.
  func isCurrent(_ facts: UnfinishedUpload.Facts) -> Bool {
    facts.phase == .finishing && facts.finish == number
  }

  /// Throws if another client has taken the upload over or removed it.
  private func check() throws(UploadFailure) {
    let facts = upload.factsNow
    guard isCurrent(facts) else { throw UnfinishedUpload.conflict(facts) }
  }

  /// Reopens the upload, because the application has refused the finish.
  func refuse() {
    upload.work.withLock(of: upload) { _ in giveUp() }
  }

  /// Reopens the upload, if this finish is still running.
  private func giveUp() {
    upload.facts.withLock(of: upload) { if isCurrent($0) { $0.phase = .open } }
  }

  /// Whether the hash of the bytes equals the client's. All bytes must be hashed.
  func isIntact() throws(UploadFailure) -> Bool {
    try step { work throws(UploadFailure) in
      guard work.hashed == work.written else { throw .damaged("the hash is not complete") }
      return work.digest.copy().finalize() == request.sha256
    }
  }

  /// Completes some of the files; returns whether there are more. The bytes must be intact.
  func completeMore() throws(UploadFailure) -> Bool {
    try step { work throws(UploadFailure) in
      var files = try filing { () throws(FileError) in
        try PartFiles(upload.layout, in: upload.parent.folder(upload.id))
      }
      if !work.completion.hasBegun, let next = work.uncut {
        work.uncut = try filing { () throws(FileError) in
          try files.cut(to: work.written, from: next)
        }
        return true
      }
      // These files may be empty: an append after a takeover has to remove them.
      work.uncut = 0
      return try files.complete(&work.completion, at: work.written)
    }
  }

  /// Makes it durable that the upload is finished; its files must be complete. Throws if the
  /// client's quota of finished uploads is exhausted.
  func commit(_ quota: FinishedQuota, now: UInt64) throws(UploadFailure) {
    try step { work throws(UploadFailure) in
      let (files, bytes, client) = (upload.layout.fileCount, work.written, upload.principal)
      try quota.take(files: files, bytes: bytes, of: client, now: now)
      do throws(FileError) {
        try upload.commit { $0.phase = .finished(hash: request.sha256) }
      } catch {
        quota.giveBack(files: files, bytes: bytes, of: client)
        throw UploadFailure(error)
      }
    }
  }

  /// Runs a step of the finish; reopens the upload if it fails.
  private func step<Value: Sendable>(
    _ body: (inout UnfinishedUpload.Work) throws(UploadFailure) -> Value
  ) throws(UploadFailure) -> Value {
    try upload.work.withLock(of: upload) { work throws(UploadFailure) in
      try check()
      do throws(UploadFailure) {
        return try body(&work)
      } catch {
        giveUp()
        throw error
      }
    }
  }
}

extension UploadStore {
  /// The state of an upload when a finish begins.
  enum FinishStart {
    /// The upload was finished before.
    case done(FinishResponse)
    /// The upload is finished, but its folder was not moved yet.
    case committed(UnfinishedUpload)
    case hashing(Finishing)
  }

  /// Begins to answer a finish request.
  func beginFinish(
    _ request: FinishRequest, of principal: String
  ) throws(UploadFailure) -> FinishStart {
    guard request.sha256.count == 32 else { throw .malformed("sha256 has 32 bytes") }
    guard let upload = try upload(request.id, for: principal) else {
      let record = try finish(of: request.id)
      guard record.size == request.size, record.sha256 == request.sha256 else {
        throw .mismatch("the upload was finished with another size or hash")
      }
      return .done(FinishResponse(names: record.names))
    }
    let start: Result<FinishStart, UploadFailure> = upload.work.withLock(of: upload) { work in
      let start: Result<FinishStart, UploadFailure> = upload.facts.withLock(of: upload) { facts in
        if case .finished(let hash) = facts.phase {
          return hash == request.sha256 && facts.offset == request.size
            ? .success(.committed(upload))
            : .failure(.mismatch("the upload was finished with another size or hash"))
        }
        guard facts.phase == .open, facts.append == nil, facts.generation == request.generation
        else { return .failure(UnfinishedUpload.conflict(facts)) }
        guard facts.offset == request.size else {
          return .failure(.mismatch("the upload has \(facts.offset) bytes"))
        }
        guard upload.layout.isComplete(facts.offset) else {
          return .failure(.mismatch("the parts have not come whole"))
        }
        facts.phase = .finishing
        facts.finish += 1
        return .success(
          .hashing(Finishing(upload: upload, request: request, number: facts.finish)))
      }
      if case .success(.hashing) = start { work.completion = PartFiles.Completion() }
      return start
    }
    return try start.get()
  }

  /// Ends a finish whose bytes are hashed, and whose files are complete if the hash is right.
  /// Throws `mismatch` only if it has removed the upload; `removeMore` removes its remaining files.
  func endFinish(_ finishing: Finishing, now: UInt64) throws(UploadFailure) -> Settled {
    guard try finishing.isIntact() else {
      guard try remove(finishing.upload, if: finishing.isCurrent) else {
        throw UnfinishedUpload.conflict(finishing.upload.factsNow)
      }
      counted { $0.mismatched += 1 }
      throw .mismatch("the bytes have another hash; the upload was removed")
    }
    try finishing.commit(finishedQuota, now: now)
    counted { $0.finished += 1 }
    return try settle(finishing.upload, now: now)
  }

  /// The result of moving a finished upload to its folder.
  struct Settled {
    let response: FinishResponse
    /// Whether this call has moved the upload.
    let isFirst: Bool
  }

  /// Moves a finished upload to its folder, from any state in which a crash or an error has left
  /// it.
  func settle(_ upload: UnfinishedUpload, now: UInt64) throws(UploadFailure) -> Settled {
    let record: StoredFinish? = try upload.work.withLock(of: upload) { _ throws(UploadFailure) in
      let facts = upload.factsNow
      guard case .finished(let hash) = facts.phase else { return nil }
      let record = StoredFinish(
        names: upload.layout.names, generation: facts.generation, size: facts.offset,
        sha256: hash, expiresAtMs: now + lifetime, key: upload.key,
        partsSha256: upload.requestHash, principal: upload.principal)
      try filing { () throws(FileError) in try move(upload.id, record) }
      // Before the phase changes, so that the upload is known at any time.
      remember(record, upload.id)
      upload.facts.withLock(of: upload) { $0.phase = .gone }
      return record
    }
    // Another request has moved it meanwhile.
    guard let record else {
      let names = try finish(of: upload.id).names
      return Settled(response: FinishResponse(names: names), isFirst: false)
    }
    forget(upload, record.size)
    return Settled(response: FinishResponse(names: record.names), isFirst: true)
  }

  private func move(_ id: String, _ record: StoredFinish) throws(FileError) {
    let folder = try unfinished.folder(id)
    if try folder.kind(of: PartFiles.filesName) == .folder {
      try folder.rename(PartFiles.filesName, to: root, as: id)
    } else if try root.kind(of: id) != .folder {
      throw FileError("find the files of", id, errno: FileError.damaged)
    }
    try root.sync()
    let partial = ".\(id)"
    try finishedFolder.removeFile(partial)
    try finishedFolder.write((try? record.encodedBytes()) ?? [], to: partial)
    try finishedFolder.rename(partial, to: finishedFolder, as: id)
    try finishedFolder.sync()
    // `removeMore`, or the next start, removes the rest.
    _ = try? removeSome(of: id)
  }

  // MARK: What was finished

  /// Records a finished upload, and forgets the oldest if there are too many.
  func remember(_ record: StoredFinish, _ id: String) {
    let entry = Finished(
      principal: record.principal, key: record.key, expiresAt: record.expiresAtMs)
    let surplus: String? = table.withLock(of: self) { table in
      table.remember(entry, id)
      if !entry.key.isEmpty {
        table.keys[Key(principal: entry.principal, key: entry.key)] = id
      }
      return table.surplus(of: entry.principal)
    }
    if let surplus { forgetFinish(surplus) }
  }

  /// Forgets a finished upload; its files stay.
  func forgetFinish(_ id: String) {
    table.withLock(of: self) { table in
      guard let entry = table.forget(id) else { return }
      let key = Key(principal: entry.principal, key: entry.key)
      if table.keys[key] == id { table.keys[key] = nil }
    }
    try? finishedFolder.removeFile(id)
  }

  /// The record of a finished upload.
  func finish(of id: String) throws(UploadFailure) -> StoredFinish {
    guard table.withLock(of: self, { $0.finished[id] != nil }) else { throw .unknown }
    do throws(FileError) {
      let bytes = try finishedFolder.contents(of: id, limit: Self.mostRecordBytes)
      guard let record = try? StoredFinish(decodingBytes: bytes) else {
        throw FileError("read", "\(Self.finishedName)/\(id)", errno: FileError.damaged)
      }
      return record
    } catch {
      if error.isMissing { throw .unknown }
      throw UploadFailure(error)
    }
  }

  /// The largest record that is read, in bytes: larger than that of any upload.
  static let mostRecordBytes = 1 << 20
}
