// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// What one turn on the threads for files does at most, however many parts an upload has.
@Suite struct StepTests {
  /// Counts what a store does to files.
  private final class Steps: Sendable {
    private let steps = Mutex<[FileStep.Action]>([])

    var probe: FileProbe { { step in self.steps.withLock { $0.append(step.action) } } }

    func take() -> [FileStep.Action] {
      steps.withLock { steps in
        defer { steps = [] }
        return steps
      }
    }
  }

  private let steps = Steps()

  /// Makes turns as long as they say that there is more; returns how many there were.
  private func turns(_ turn: () throws -> Bool) rethrows -> Int {
    var count = 0
    var isOver = false
    _ = steps.take()
    while !isOver {
      isOver = try !turn()
      count += 1
      let actions = steps.take()
      // Besides the parts there are a few folders and the file with the fields.
      #expect(actions.count <= 40)
      let flushes = actions.count { $0 == .sync || $0 == .syncFolder }
      #expect(flushes <= 8)
    }
    return count
  }

  private func finishing(
    _ stage: StoreStage, _ id: String, _ bytes: [UInt8]
  ) throws -> Finishing {
    let request = FinishRequest(
      id: id, generation: 1, size: UInt64(bytes.count), sha256: SHA256Digest.hash(of: bytes))
    guard case .hashing(let finishing) = try stage.store.beginFinish(request, of: "a") else {
      throw UploadFailure.unknown
    }
    return finishing
  }

  @Test func `a finish makes 1,000 empty files in many turns`() throws {
    let stage = try StoreStage(probe: steps.probe)
    let parts = (0..<500).flatMap { _ in [StoreStage.file("a", 0), StoreStage.field("f", 0)] }
    let id = try stage.create(parts).id
    let finishing = try finishing(stage, id, [])
    #expect(try !finishing.hashMore())
    let completions = try turns { try finishing.completeMore() }
    #expect(completions == 32)
    let settled = try stage.store.endFinish(finishing, now: stage.now)
    #expect(settled.isFirst && Set(settled.response.names).count == 501)
    #expect(stage.directory.names(id).count == 501)
    #expect(stage.directory.names(".unfinished") == [])
  }

  @Test func `an append writes 1,000 small files in many turns, and an abort removes them so`()
    throws
  {
    let stage = try StoreStage(probe: steps.probe)
    let id = try stage.create((0..<1_000).map { StoreStage.file("\($0)", 1) }).id
    let append = try stage.store.beginAppend(
      AppendRequest(id: id, generation: 1, offset: 0), of: "a")
    var rest = StoreStage.bytes(1_000)[...]
    let writes = try turns {
      rest = rest.dropFirst(try append.write(rest))
      return !rest.isEmpty
    }
    #expect(writes == 125)
    #expect(try append.end(now: stage.now) == 1_000)
    let removals = try turns {
      // The first turn is that of the abort.
      guard stage.store.upload(id) != nil else { return try stage.store.removeMore(id) }
      try stage.store.abort(AbortRequest(id: id), of: "a")
      return true
    }
    #expect(removals >= 32)
    #expect(stage.directory.names(".unfinished") == [])
  }

  @Test func `an append removes what an append has left in 1,000 files in many turns`() throws {
    let fails = Mutex(false)
    let probe = steps.probe
    let stage = try StoreStage { step throws(FileError) in
      try probe(step)
      guard step.path.hasSuffix("/state"), fails.withLock({ $0 }) else { return }
      throw FileError("do", step.path, errno: EIO)
    }
    let id = try stage.create((0..<1_000).map { StoreStage.file("\($0)", 1) }).id
    let bytes = StoreStage.bytes(1_000)
    fails.withLock { $0 = true }
    expect(.failed(FileError("", "", errno: EIO))) { try stage.append(bytes, to: id, at: 0) }
    fails.withLock { $0 = false }
    #expect(stage.directory.names(".unfinished/\(id)/files").count == 1_000)
    let append = try stage.store.beginAppend(
      AppendRequest(id: id, generation: 1, offset: 0), of: "a")
    var rest = bytes[...]
    let writes = try turns {
      rest = rest.dropFirst(try append.write(rest))
      return !rest.isEmpty
    }
    // The last turn that removes some writes as well.
    #expect(writes == 31 + 125)
    #expect(try append.end(now: stage.now) == 1_000)
    try stage.finish(id, bytes)
  }

  @Test func `a takeover in the middle of a finish leaves nothing in the way of an append`() throws
  {
    let stage = try StoreStage()
    let parts = (0..<40).map { StoreStage.file("\($0)", 0) } + [StoreStage.file("last", nil)]
    let id = try stage.create(parts).id
    let finishing = try finishing(stage, id, [])
    #expect(try !finishing.hashMore() && finishing.isIntact())
    while try finishing.completeMore() {}
    #expect(try stage.status(id, takesOver: true).generation == 2)
    #expect(throws: UploadFailure.conflict(offset: 0, generation: 2)) {
      try stage.store.endFinish(finishing, now: stage.now)
    }
    try stage.append([1, 2], to: id, at: 0, generation: 2)
    try stage.finish(id, [1, 2], generation: 2)
    #expect(stage.directory.file("\(id)/last") == [1, 2])
    #expect(stage.directory.names(id).count == 42)
  }

  @Test func `what expires is removed in many turns`() throws {
    var stage = try StoreStage(probe: steps.probe)
    for _ in 0..<3 {
      let id = try stage.create((0..<100).map { StoreStage.file("\($0)", 1) }).id
      try stage.append(StoreStage.bytes(100), to: id, at: 0)
    }
    stage.now += 86_400_000
    let (store, now) = (stage.store, stage.now)
    let removals = turns { store.expire(now: now) == now }
    #expect(removals >= 12)
    #expect(stage.directory.names(".unfinished") == [] && stage.store.counters.expired == 3)
  }
}
