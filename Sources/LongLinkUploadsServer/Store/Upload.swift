// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// An upload that is not finished. It may be used from any thread; most functions block.
///
/// `work` is held while files are written; `facts` never for long. Facts change only while `work`
/// is held as well, so that what is read of them there stays true.
final class Upload: Sendable {
  /// What can be done with an upload.
  enum Phase: Equatable {
    case open
    /// The upload's bytes are being hashed, so that it can be finished.
    case finishing
    /// The upload is finished, but not yet in its place.
    case finished(hash: [UInt8])
    /// The upload was removed, or is in its place.
    case gone
  }

  /// What is known without looking at files.
  struct Facts {
    var phase = Phase.open
    var generation: UInt64
    /// The number of bytes that are durable.
    var offset: UInt64
    /// When the upload expires, in milliseconds since 1970.
    var expiresAt: UInt64
    /// The number of the state that was written last.
    var number: UInt64
    /// The append that may write.
    var append: Append?
    /// The number of the finish that was begun last.
    var finish: UInt64 = 0
  }

  /// What belongs to the thread that works on the files.
  struct Work: ~Copyable {
    /// The open files of the append that runs.
    var files: PartFiles?
    /// The number of bytes that were written, durable or not.
    var written: UInt64
    /// The first part whose file may have more; nil if the files end there.
    var uncut: Int?
    /// The hash of the first bytes, up to `hashed`.
    var digest = SHA256Digest()
    var hashed: UInt64 = 0
    /// How far the finish that was begun last is with the files.
    var completion = PartFiles.Completion()

    /// Forgets what was written after an offset, or may not have been.
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
  /// The hash of the request that created it, without its key.
  let requestHash: [UInt8]
  /// The bytes of that request.
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

  /// A hash of all that a request says about the parts.
  static func hash(of request: CreateRequest) -> [UInt8] {
    SHA256Digest.hash(of: (try? CreateRequest(parts: request.parts).encodedBytes()) ?? [])
  }

  /// The facts of this moment.
  var factsNow: Facts { facts.withLock(of: self) { $0 } }

  /// The failure of a request at a time at which it cannot be done.
  static func conflict(_ facts: Facts) -> UploadFailure {
    facts.phase == .gone
      ? .unknown : .conflict(offset: facts.offset, generation: facts.generation)
  }

  // MARK: While `work` is held

  /// Makes other facts durable, and then true.
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

  /// Makes durable what was written, and lets the append write no more. What cannot be made durable
  /// is forgotten.
  func endAppend(_ work: inout Work, now: UInt64, lifetime: UInt64) throws(FileError) {
    let facts = factsNow
    let offset = facts.offset
    defer {
      stopAppend()
      work.files = nil
    }
    // The bytes of a removed upload count no more, and its state is gone.
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

  /// Raises the generation, and stops the append that runs.
  func takeOver(now: UInt64, lifetime: UInt64) throws(UploadFailure) {
    try work.withLock(of: self) { work throws(UploadFailure) in
      // Bytes that cannot be made durable are sent again.
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

  /// Lets nobody use the upload any more, and returns the number of bytes that it has, or nil if it
  /// was removed already or is not in a phase in which it may be.
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
