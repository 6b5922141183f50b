// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// Crashes of the process, and of the machine with all that was not flushed.
@Suite struct CrashTests {
  private static let first = StoreStage.bytes(5_000)
  private static let second = StoreStage.bytes(4_000, seed: 3)
  private static let parts = [
    StoreStage.file("a", 3_000), StoreStage.field("n", 10), StoreStage.file("a", 0),
    StoreStage.file("b", nil),
  ]

  /// What a client knows.
  private struct Client {
    var upload: CreateResponse?
    /// The offset that it was told last.
    var acknowledged: UInt64 = 0
    var isFinished = false
  }

  /// Does the next thing that is to be done, until the upload is finished; throws what it is
  /// answered.
  private func goOn(_ client: inout Client, _ stage: StoreStage) throws {
    let all = Self.first + Self.second
    if client.upload == nil { client.upload = try stage.create(Self.parts, key: "k") }
    guard let id = client.upload?.id else { return }
    var status = try stage.status(id, takesOver: true)
    #expect(status.offset >= client.acknowledged)
    while status.state == .open, status.offset < UInt64(all.count) {
      let end = status.offset < 5_000 ? 5_000 : all.count
      status.offset = try stage.append(
        Array(all[Int(status.offset)..<end]), to: id, at: status.offset,
        generation: status.generation)
      client.acknowledged = status.offset
    }
    #expect(
      try stage.finish(id, all, generation: status.generation) == ["a", "", "a-2", "b"])
    client.isFinished = true
  }

  private func checkPlace(_ client: Client, _ directory: UploadDirectory) throws {
    let id = try #require(client.upload?.id)
    let all = Self.first + Self.second
    #expect(directory.names(id) == ["a", "a-2", "b", "fields.json"])
    #expect(directory.file("\(id)/a") == Array(all[..<3_000]))
    #expect(directory.file("\(id)/b") == Array(all[3_010...]))
    #expect(directory.names(".unfinished") == [] && directory.names(".finished") == [id])
    // A create whose response was lost has left nothing behind.
    #expect(directory.names() == [".finished", ".unfinished", id].sorted())
  }

  @Test func `a crash at any step loses nothing that was acknowledged`() throws {
    var step = 0
    while true {
      step += 1
      let directory = UploadDirectory()
      let crash = Crash(at: step, in: directory)
      var client = Client()
      do {
        let stage = try StoreStage(in: directory, probe: crash.probe)
        try goOn(&client, stage)
      } catch {
        #expect(crash.hasHappened, "step \(step): \(error)")
      }
      crash.loseWhatWasNotFlushed()
      guard crash.hasHappened else { break }
      let stage = try StoreStage(in: directory)
      try goOn(&client, stage)
      #expect(client.isFinished, "step \(step)")
      try checkPlace(client, directory)
    }
    #expect(step > 40)
  }

  @Test func `two crashes lose nothing either`() throws {
    for step in stride(from: 3, to: 60, by: 4) {
      let directory = UploadDirectory()
      var client = Client()
      for _ in 0..<2 {
        let crash = Crash(at: step, in: directory)
        let stage = try? StoreStage(in: directory, probe: crash.probe)
        if let stage { try? goOn(&client, stage) }
        crash.loseWhatWasNotFlushed()
      }
      try goOn(&client, try StoreStage(in: directory))
      try checkPlace(client, directory)
    }
  }

  @Test(arguments: [ENOSPC, EDQUOT, EIO])
  func `a disk that fails at any step keeps what is there`(_ code: CInt) throws {
    var step = 0
    while true {
      step += 1
      let directory = UploadDirectory()
      let fault = Fault(at: step, errno: code)
      var client = Client()
      guard var stage = try? StoreStage(in: directory, probe: fault.probe) else { continue }
      do {
        try goOn(&client, stage)
      } catch let failure as UploadFailure {
        let isNoSpace = if case .noSpace = failure { true } else { false }
        #expect(isNoSpace == (code != EIO), "step \(step): \(failure)")
      }
      // The same store goes on, once there is room again.
      try goOn(&client, stage)
      #expect(stage.store.counters.unfinishedBytes == 0, "step \(step)")
      // What could not be removed, the next start removes.
      try stage.restart()
      try checkPlace(client, directory)
      if !fault.hasHappened { break }
    }
    #expect(step > 40)
  }

  @Test func `a crash after the first turn of an abort does not bring the upload back`() throws {
    let steps = Mutex<[FileStep]>([])
    var stage = try StoreStage(probe: { step in steps.withLock { $0.append(step) } })
    let id = try stage.create((0..<100).map { StoreStage.field("\($0)", 1) }, key: "k").id
    try stage.append(StoreStage.bytes(100), to: id, at: 0)
    steps.withLock { $0 = [] }
    try stage.store.abort(AbortRequest(id: id), of: "a")
    #expect(stage.directory.names(".unfinished/\(id)/fields").count > 0)
    // The name of the state is gone for good before any other.
    let first = steps.withLock { Array($0.prefix(2)) }
    #expect(first.map(\.action) == [.remove, .syncFolder])
    #expect(first.map(\.path) == [".unfinished/\(id)/state", ".unfinished/\(id)"])
    try stage.restart()
    #expect(throws: UploadFailure.unknown) { try stage.status(id) }
    let counters = stage.store.counters
    #expect(counters.restored == 0 && counters.unfinished == 0 && counters.unfinishedBytes == 0)
    #expect(stage.directory.names(".unfinished") == [])
    _ = try stage.create([StoreStage.file("a", 1)], key: "k")
  }

  @Test(arguments: [false, true])
  func `a crash behind a finish leaves nothing, though its files were taken away`(
    keepsState: Bool
  ) throws {
    var stage = try StoreStage { step throws(FileError) in
      if keepsState, step.action == .remove, step.path.hasSuffix("/state") {
        throw FileError("do", step.path, errno: EIO)
      }
    }
    let id = try stage.create((0..<100).map { StoreStage.field("\($0)", 1) }).id
    try stage.append(StoreStage.bytes(100), to: id, at: 0)
    try stage.finish(id, StoreStage.bytes(100))
    #expect(stage.directory.names(".unfinished") == [id])
    try FileManager.default.removeItem(atPath: "\(stage.directory.path)/\(id)")
    try stage.restart()
    #expect(try stage.status(id).state == .finished)
    #expect(stage.store.counters.unfinished == 0 && stage.store.upload(id) == nil)
    #expect(stage.directory.names(".unfinished") == [])
  }

  @Test func `a torn state leaves the one before`() throws {
    var stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", nil)]).id
    try stage.append([1, 2], to: id, at: 0)
    try stage.append([3, 4], to: id, at: 2)
    let state = try #require(stage.directory.file(".unfinished/\(id)/state"))
    // The third state is in the second slot, the one before in the first.
    for (byte, offset) in [(512 + 10, 2), (10, 4)] {
      var torn = state
      torn[byte] ^= 0x5A
      stage.directory.write(torn, to: ".unfinished/\(id)/state")
      try stage.restart()
      #expect(try stage.status(id).offset == UInt64(offset))
    }
    stage.directory.write(state.map { _ in 0 }, to: ".unfinished/\(id)/state")
    try stage.restart()
    #expect(throws: UploadFailure.unknown) { try stage.status(id) }
  }

  @Test func `files that somebody has cut lower the offset, and zeros do not get in`() throws {
    var stage = try StoreStage()
    let id = try stage.create([StoreStage.file("a", 4), StoreStage.file("b", 4)]).id
    try stage.append([1, 2, 3, 4, 5, 6], to: id, at: 0)
    stage.directory.write([1, 2, 3], to: ".unfinished/\(id)/files/a")
    try stage.restart()
    #expect(try stage.status(id).offset == 3)
    try stage.append([4, 5, 6, 7, 8], to: id, at: 3)
    try stage.finish(id, [1, 2, 3, 4, 5, 6, 7, 8])
    #expect(stage.directory.file("\(id)/b") == [5, 6, 7, 8])
  }
}
