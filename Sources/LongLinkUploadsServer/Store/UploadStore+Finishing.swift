// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// An upload whose bytes are compared with the hash of its client. Its functions block.
struct Finishing: Sendable {
  /// How many bytes one call hashes at most.
  private static let step = 4 << 20
  private static let pieceSize = 1 << 18

  let upload: Upload
  let request: FinishRequest
  /// The number of this finish among those of the upload.
  let number: UInt64

  /// Reads some bytes that have no hash yet; returns whether there are more.
  ///
  /// Usually they were hashed as they came. After a restart they are read again.
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

  /// Whether this finish goes on: a takeover ends it, and a further finish may have begun since
  /// then.
  func isCurrent(_ facts: Upload.Facts) -> Bool {
    facts.phase == .finishing && facts.finish == number
  }

  /// Throws if another client has taken the upload over meanwhile, or has removed it.
  private func check() throws(UploadFailure) {
    let facts = upload.factsNow
    guard isCurrent(facts) else { throw Upload.conflict(facts) }
  }

  /// Lets the upload be gone on with, whose finish the application has refused.
  func refuse() {
    upload.work.withLock(of: upload) { _ in giveUp() }
  }

  /// Lets the upload be gone on with, if this finish has not ended.
  private func giveUp() {
    upload.facts.withLock(of: upload) { if isCurrent($0) { $0.phase = .open } }
  }

  /// Whether the bytes, all of which were hashed, have the hash of the client.
  func isIntact() throws(UploadFailure) -> Bool {
    try step { work throws(UploadFailure) in
      guard work.hashed == work.written else { throw .damaged("the hash is not complete") }
      return work.digest.copy().finalize() == request.sha256
    }
  }

  /// Makes some of the files complete; returns whether there are more. Only for bytes that are
  /// intact.
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
      // An append behind a takeover removes the empty files that are made now.
      work.uncut = 0
      return try files.complete(&work.completion, at: work.written)
    }
  }

  /// Makes the state say that the upload is finished, whose files are complete, if its client may
  /// finish so much.
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

  /// Does a part of the work. If it fails, the upload can be gone on with.
  private func step<Value: Sendable>(
    _ body: (inout Upload.Work) throws(UploadFailure) -> Value
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
  /// Where a finish begins.
  enum FinishStart {
    /// The upload was finished before.
    case done(FinishResponse)
    /// The upload is finished, but not in its place.
    case committed(Upload)
    case hashing(Finishing)
  }

  /// Begins to answer a finish.
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
        else { return .failure(Upload.conflict(facts)) }
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

  /// Answers a finish whose bytes were hashed, and whose files are complete if they are intact.
  /// Throws `mismatch` only if it has removed the upload, the rest of which `removeMore` removes.
  func endFinish(_ finishing: Finishing, now: UInt64) throws(UploadFailure) -> Settled {
    guard try finishing.isIntact() else {
      guard try remove(finishing.upload, if: finishing.isCurrent) else {
        throw Upload.conflict(finishing.upload.factsNow)
      }
      counted { $0.mismatched += 1 }
      throw .mismatch("the bytes have another hash; the upload was removed")
    }
    try finishing.commit(finishedQuota, now: now)
    counted { $0.finished += 1 }
    return try settle(finishing.upload, now: now)
  }

  /// A finished upload in its place.
  struct Settled {
    let response: FinishResponse
    /// Whether this call has moved the upload to its place.
    let isFirst: Bool
  }

  /// Moves a finished upload to its place, from wherever a crash or an error has left that.
  func settle(_ upload: Upload, now: UInt64) throws(UploadFailure) -> Settled {
    let record: StoredFinish? = try upload.work.withLock(of: upload) { _ throws(UploadFailure) in
      let facts = upload.factsNow
      guard case .finished(let hash) = facts.phase else { return nil }
      let record = StoredFinish(
        names: upload.layout.names, generation: facts.generation, size: facts.offset,
        sha256: hash, expiresAtMs: now + lifetime, key: upload.key,
        partsSha256: upload.requestHash, principal: upload.principal)
      try filing { () throws(FileError) in try move(upload.id, record) }
      // First, so that the upload is known at any time.
      remember(record, upload.id)
      upload.facts.withLock(of: upload) { $0.phase = .gone }
      return record
    }
    // Another request has done it meanwhile.
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
    // What is left is removed by `removeMore`, or the next start.
    _ = try? removeSome(of: id)
  }

  // MARK: What was finished

  /// Remembers a finished upload, and forgets the oldest if there are too many.
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

  /// What is remembered of a finished upload.
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

  /// The most bytes that are read of a record: more than that of an upload with the longest names
  /// has.
  static let mostRecordBytes = 1 << 20
}
