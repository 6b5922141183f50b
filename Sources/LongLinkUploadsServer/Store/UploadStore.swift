// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport
package import LongLinkUploadMessages
internal import Synchronization

/// The uploads in a directory. It may be used from any thread; most functions block.
///
/// Instants are milliseconds since 1970.
///
/// In the directory, `.unfinished/ID/` is an unfinished upload: `upload` is its create request,
/// `state` its state; `files/` and `fields/` are its parts. To finish it, the state is set to
/// finished, then `files` becomes `ID/`, then `.finished/ID` is written, and then `.unfinished/ID`
/// is removed. After a crash, a start continues from any of these steps. An upload is removed by
/// removing its state first: a start removes a folder without a state.
package final class UploadStore: Sendable {
  static let unfinishedName = ".unfinished"
  static let finishedName = ".finished"
  static let requestName = "upload"

  /// The key of a create request; keys of different principals are different.
  struct Key: Hashable {
    let principal: String
    let key: String
  }

  struct Finished {
    let principal: String
    let key: String
    let expiresAt: UInt64
  }

  struct Table {
    var uploads: [String: UnfinishedUpload] = [:]
    /// The finished uploads that are remembered, by ID, as in `.finished`.
    private(set) var finished: [String: Finished] = [:]
    /// The number of finished uploads of each client.
    private var finishedCounts: [String: Int] = [:]
    /// The ID of the upload, unfinished or finished, for each key.
    var keys: [Key: String] = [:]
    /// The keys whose uploads are being created now.
    var creating: Set<Key> = []
    /// The upload that expired last, whose files may not all be removed.
    var expired: String?
    var isSuspended = false
    var counters = UploadCounters()

    mutating func remember(_ entry: Finished, _ id: String) {
      forget(id)
      finished[id] = entry
      finishedCounts[entry.principal, default: 0] += 1
    }

    @discardableResult
    mutating func forget(_ id: String) -> Finished? {
      guard let entry = finished.removeValue(forKey: id) else { return nil }
      finishedCounts[entry.principal, default: 0] -= 1
      if finishedCounts[entry.principal] == 0 { finishedCounts[entry.principal] = nil }
      return entry
    }

    mutating func forgetAll() { (finished, finishedCounts, keys) = ([:], [:], [:]) }

    /// The oldest finished upload of a client that has too many, or else the oldest of all if there
    /// are too many; nil if there are not.
    func surplus(of principal: String) -> String? {
      let hasTooMany = finishedCounts[principal, default: 0] > UploadLimits.mostFinishedOfClient
      guard hasTooMany || finished.count > UploadLimits.mostFinished else { return nil }
      return finished.lazy.filter { !hasTooMany || $0.value.principal == principal }
        .min { $0.value.expiresAt < $1.value.expiresAt }?.key
    }
  }

  let limits: UploadLimits
  let quotas: Quotas
  let finishedQuota: FinishedQuota
  /// The directory, which contains the finished uploads.
  let root: Folder
  let unfinished: Folder
  let finishedFolder: Folder
  let table = Mutex(Table())

  /// `limits.lifetime`, in milliseconds.
  var lifetime: UInt64 { UInt64(limits.lifetime / .milliseconds(1)) }

  /// Opens a directory, creates it if it is missing, and loads the uploads of an earlier run.
  package init(
    in directory: String, _ limits: UploadLimits, now: UInt64, probe: FileProbe? = nil
  ) throws(FileError) {
    self.limits = limits
    quotas = Quotas(limits)
    finishedQuota = FinishedQuota(limits)
    root = try Folder.open(directory, probe: probe)
    unfinished = try root.folderOrNew(Self.unfinishedName)
    finishedFolder = try root.folderOrNew(Self.finishedName)
    try lock()
    try root.sync()
    try load(now: now)
  }

  /// Releases the directory for another store. Written bytes of appends are made durable, and later
  /// requests find no upload.
  package func suspend(now: UInt64) {
    let uploads = table.withLock(of: self) { table in
      table.isSuspended = true
      return table.uploads.values.sorted { $0.id < $1.id }
    }
    for upload in uploads {
      upload.work.withLock(of: upload) { work in
        try? upload.endAppend(&work, now: now, lifetime: lifetime)
      }
      if let bytes = upload.retire(if: { _ in true }) { forget(upload, bytes) }
    }
    unfinished.unlock()
  }

  /// Takes the directory up again after `suspend`; does nothing if the store was not suspended.
  package func resume(now: UInt64) throws(FileError) {
    guard table.withLock(of: self, { $0.isSuspended }) else { return }
    try lock()
    table.withLock(of: self) { $0.forgetAll() }
    try load(now: now)
    table.withLock(of: self) { $0.isSuspended = false }
  }

  private func lock() throws(FileError) {
    // Another process would write to the same files.
    guard try unfinished.lock() else {
      throw FileError("lock", Self.unfinishedName, errno: FileError.inUse)
    }
  }

  func counted(_ count: (inout UploadCounters) -> Void) {
    table.withLock(of: self) { count(&$0.counters) }
  }

  /// A snapshot of the counters.
  package var counters: UploadCounters {
    var counters = table.withLock(of: self) { table in
      var counters = table.counters
      counters.remembered = table.finished.count
      return counters
    }
    quotas.fill(&counters)
    return counters
  }

  /// Counts a failure, if there is a counter for its kind.
  package func counting(_ failure: UploadFailure) {
    counted { counters in
      switch failure {
      case .conflict: counters.conflicts += 1
      case .tooLarge: counters.tooLarge += 1
      case .tooMany: counters.tooMany += 1
      case .noSpace: counters.noSpace += 1
      case .failed, .damaged: counters.failures += 1
      case .tooSlow: counters.tooSlow += 1
      case .malformed, .unknown, .mismatch: break
      }
    }
  }

  /// The unfinished upload with an ID; nil if there is none.
  func upload(_ id: String) -> UnfinishedUpload? {
    table.withLock(of: self) { $0.uploads[id] }
  }

  /// Returns an unfinished upload for a client; nil if it is finished. Throws `unknown` if the
  /// upload, finished or not, is not that client's.
  func upload(_ id: String, for principal: String) throws(UploadFailure) -> UnfinishedUpload? {
    let (upload, owner) = table.withLock(of: self) { table in
      let upload = table.uploads[id]
      return (upload, upload?.principal ?? table.finished[id]?.principal)
    }
    guard let owner, UploadOwner.mayUse(uploadsOf: owner, principal) else { throw .unknown }
    return upload
  }

  // MARK: Status

  /// Answers a status request.
  package func status(
    _ request: StatusRequest, of principal: String, now: UInt64
  ) throws(UploadFailure) -> StatusResponse {
    if let upload = try upload(request.id, for: principal) {
      do throws(UploadFailure) {
        if request.takesOver {
          try upload.takeOver(now: now, lifetime: lifetime)
          counted { $0.takeovers += 1 }
        }
        let facts = upload.factsNow
        if facts.phase != .gone { return status(of: facts, now: now) }
      } catch {
        // The upload may have been finished meanwhile.
        if error != .unknown { throw error }
      }
    }
    let record = try finish(of: request.id)
    return StatusResponse(
      offset: record.size, generation: record.generation, state: .finished,
      expiresInMs: record.expiresAtMs - min(now, record.expiresAtMs),
      mostAppend: UInt64(limits.maxAppendBytes))
  }

  private func status(of facts: UnfinishedUpload.Facts, now: UInt64) -> StatusResponse {
    let isFinished = if case .finished = facts.phase { true } else { false }
    return StatusResponse(
      offset: facts.offset, generation: facts.generation, state: isFinished ? .finished : .open,
      expiresInMs: facts.expiresAt - min(now, facts.expiresAt),
      mostAppend: UInt64(limits.maxAppendBytes))
  }

  // MARK: Append

  /// Begins an append. When it has ended, the caller must call `quotas.removeAppend`.
  func beginAppend(
    _ request: AppendRequest, of principal: String
  ) throws(UploadFailure) -> Append {
    guard let upload = try upload(request.id, for: principal) else {
      let record = try finish(of: request.id)
      throw .conflict(offset: record.size, generation: record.generation)
    }
    try quotas.addAppend(of: principal)
    let append = Append(upload, self)
    let failure = upload.work.withLock(of: upload) { _ in
      upload.facts.withLock(of: upload) { facts -> UploadFailure? in
        guard facts.phase == .open, facts.append == nil, facts.offset == request.offset,
          facts.generation == request.generation
        else { return UnfinishedUpload.conflict(facts) }
        facts.append = append
        return nil
      }
    }
    if let failure {
      quotas.removeAppend(of: principal)
      throw failure
    }
    return append
  }

  // MARK: Abort

  /// Aborts an upload: removes it with some of its files. `removeMore` removes the others.
  package func abort(
    _ request: AbortRequest, of principal: String
  ) throws(UploadFailure) {
    guard let upload = try upload(request.id, for: principal) else {
      let record = try finish(of: request.id)
      throw .conflict(offset: record.size, generation: record.generation)
    }
    guard try remove(upload, if: { $0.phase == .open }) else {
      throw UnfinishedUpload.conflict(upload.factsNow)
    }
    counted { $0.aborted += 1 }
  }

  /// Removes an upload with some of its files. Returns false, and does nothing, if it is gone or
  /// `mayRemove` returns false.
  func remove(
    _ upload: UnfinishedUpload, if mayRemove: (UnfinishedUpload.Facts) -> Bool
  ) throws(UploadFailure) -> Bool {
    guard let bytes = upload.retire(if: mayRemove) else { return false }
    forget(upload, bytes)
    _ = try removeMore(upload.id)
    return true
  }

  /// Removes some remaining files of an upload that was removed or moved; returns whether there are
  /// more.
  func removeMore(_ id: String) throws(UploadFailure) -> Bool {
    try filing { () throws(FileError) in
      guard try removeSome(of: id) else { return true }
      try unfinished.sync()
      return false
    }
  }

  /// Removes some of an upload's files, first its state, without which a start does not load it.
  /// Returns whether all are removed.
  func removeSome(of id: String) throws(FileError) -> Bool {
    try unfinished.removeFolder(id, first: StateFile.name, atMost: PartFiles.mostAtOnce)
  }

  /// Takes a retired upload with `bytes` bytes out of the table and the quotas.
  func forget(_ upload: UnfinishedUpload, _ bytes: UInt64) {
    table.withLock(of: self) { table in
      table.uploads[upload.id] = nil
      let key = Key(principal: upload.principal, key: upload.key)
      guard table.finished[upload.id] == nil, table.keys[key] == upload.id else { return }
      table.keys[key] = nil
    }
    quotas.removeUpload(
      of: upload.principal, requestSize: upload.requestSize, files: upload.layout.fileCount,
      bytes: bytes)
  }

  // MARK: Expiry

  /// Removes some expired uploads, or forgets finished ones. Returns when the next one expires:
  /// `now` if there are more to remove; nil if none does.
  package func expire(now: UInt64) -> UInt64? {
    let (uploads, finished, last) = table.withLock(of: self) { table in
      (
        table.uploads.values.sorted { $0.id < $1.id },
        table.finished.filter { $0.value.expiresAt <= now }.keys.sorted()
          .prefix(PartFiles.mostAtOnce),
        table.expired.take()
      )
    }
    if let last {
      // The next start removes what cannot be removed now.
      if (try? removeMore(last)) == true { table.withLock(of: self) { $0.expired = last } }
      return now
    }
    for upload in uploads where upload.factsNow.expiresAt <= now {
      let isExpired = try? remove(upload) {
        $0.phase == .open && $0.append == nil && $0.expiresAt <= now
      }
      if isExpired == false { continue }
      table.withLock(of: self) { table in
        table.counters.expired += 1
        table.expired = upload.id
      }
      return now
    }
    for id in finished { forgetFinish(id) }
    if finished.count == PartFiles.mostAtOnce { return now }
    return table.withLock(of: self) { table in
      let open = table.uploads.values.map { max($0.factsNow.expiresAt, now + 1_000) }
      return (open + table.finished.values.map(\.expiresAt)).min()
    }
  }
}
