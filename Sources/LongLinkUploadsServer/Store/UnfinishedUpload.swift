// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// An unfinished upload. It may be used from any thread; most functions block.
///
/// `work` is locked while files are written; `facts` is never locked for long. Facts change only
/// while `work` is locked too, so that they stay true for the thread that holds it.
final class UnfinishedUpload: Sendable {
  /// The phase of an upload, which decides what can be done with it.
  enum Phase: Equatable {
    case open
    /// The upload's bytes are being hashed, so that it can be finished.
    case finishing
    /// The upload is finished, but its folder was not moved yet.
    case finished(hash: [UInt8])
    /// The upload was removed, or was finished and moved.
    case gone
  }

  /// The facts about an upload that need no look at its files.
  struct Facts {
    var phase = Phase.open
    var generation: UInt64
    /// The number of bytes that are durable.
    var offset: UInt64
    /// When the upload expires, in milliseconds since 1970.
    var expiresAt: UInt64
    /// The number of the state that was written to the state file last.
    var number: UInt64
    /// The append that may write; nil if there is none.
    var append: Append?
    /// The number of finishes that were begun.
    var finish: UInt64 = 0
  }

  /// The state of the thread that works on the upload's files.
  struct Work: ~Copyable {
    /// The open files of the running append; nil if there are none.
    var files: PartFiles?
    /// The number of bytes that were written, durable or not.
    var written: UInt64
    /// The first part whose file may have too many bytes; nil if no file has.
    var uncut: Int?
    /// The hash of the first `hashed` bytes.
    var digest = SHA256Digest()
    var hashed: UInt64 = 0
    /// How far the last finish has completed the files.
    var completion = PartFiles.Completion()

    /// Goes back to an offset after a failure: bytes after it may not have been written.
    mutating func fallBack(to offset: UInt64) {
      files = nil
      written = offset
      uncut = 0
      if hashed > offset {
        digest = SHA256Digest()
        hashed = 0
      }
    }
  }

  let id: String
  let principal: String
  let key: String
  /// The hash of the create request, without its key.
  let requestHash: [UInt8]
  /// The size of the create request, in bytes.
  let requestSize: Int
  let layout: PartLayout
  /// The folder `.unfinished`.
  let parent: Folder
  let quotas: Quotas
  let facts: Mutex<Facts>
  let work: Mutex<Work>

  init(
    id: String, _ request: CreateRequest, of principal: String, in parent: Folder,
    _ quotas: Quotas, _ state: StoredState, uncut: Int?
  ) {
    self.quotas = quotas
    self.id = id
    self.principal = principal
    key = request.key
    requestHash = Self.hash(of: request)
    requestSize = (try? request.encodedByteCount) ?? 0
    layout = PartLayout(request.parts)
    self.parent = parent
    let phase: Phase = state.sha256.isEmpty ? .open : .finished(hash: state.sha256)
    facts = Mutex(
      Facts(
        phase: phase, generation: state.generation, offset: state.offset,
        expiresAt: state.expiresAtMs, number: state.number))
    work = Mutex(Work(written: state.offset, uncut: uncut))
  }

  /// Returns the hash of everything that a create request says about the parts.
  static func hash(of request: CreateRequest) -> [UInt8] {
    SHA256Digest.hash(of: (try? CreateRequest(parts: request.parts).encodedBytes()) ?? [])
  }

  /// A copy of the facts as they are now.
  var factsNow: Facts { facts.withLock(of: self) { $0 } }

  /// The failure of a request that does not fit the upload's facts.
  static func conflict(_ facts: Facts) -> UploadFailure {
    facts.phase == .gone
      ? .unknown : .conflict(offset: facts.offset, generation: facts.generation)
  }

  // MARK: While `work` is held

  /// Writes changed facts to the state file, and then makes them the current ones.
  func commit(_ change: (inout Facts) -> Void) throws(FileError) {
    var next = factsNow
    change(&next)
    next.number += 1
    var state = StoredState(
      number: next.number, generation: next.generation, offset: next.offset,
      expiresAtMs: next.expiresAt)
    if case .finished(let hash) = next.phase { state.sha256 = hash }
    try StateFile.replace(with: state, in: parent.folder(id))
    facts.withLock(of: self) { $0 = next }
  }

  /// Ends the running append and makes its bytes durable. If they cannot be made durable, they are
  /// forgotten.
  func endAppend(_ work: inout Work, now: UInt64, lifetime: UInt64) throws(FileError) {
    let facts = factsNow
    let offset = facts.offset
    defer {
      stopAppend()
      work.files = nil
    }
    // A removed upload has no state any more, and its bytes do not count.
    guard work.written > offset, facts.phase != .gone else { return }
    let written = work.written
    do throws(FileError) {
      try work.files?.sync()
      try commit { facts in
        facts.offset = written
        facts.expiresAt = now + lifetime
      }
    } catch {
      quotas.giveBack(written - offset, of: principal)
      work.fallBack(to: offset)
      throw error
    }
  }

  private func stopAppend() {
    let append = facts.withLock(of: self) { facts in
      defer { facts.append = nil }
      return facts.append
    }
    append?.stopped.open(())
  }

  /// Raises the generation, and stops the running append.
  func takeOver(now: UInt64, lifetime: UInt64) throws(UploadFailure) {
    try work.withLock(of: self) { work throws(UploadFailure) in
      // The client sends bytes again that cannot be made durable.
      try? endAppend(&work, now: now, lifetime: lifetime)
      switch factsNow.phase {
      case .gone: throw .unknown
      case .finished: return
      case .open, .finishing: break
      }
      try filing { () throws(FileError) in
        try commit { facts in
          facts.generation += 1
          facts.phase = .open
        }
      }
    }
  }

  /// Makes the upload `gone`, so that no request uses it any more, and returns the number of its
  /// bytes. Returns nil, and does nothing, if it is gone already or `mayRetire` returns false.
  func retire(if mayRetire: (Facts) -> Bool) -> UInt64? {
    work.withLock(of: self) { work in
      let isRetired = facts.withLock(of: self) { facts in
        guard facts.phase != .gone, mayRetire(facts) else { return false }
        facts.phase = .gone
        return true
      }
      guard isRetired else { return nil }
      stopAppend()
      work.files = nil
      return work.written
    }
  }
}
