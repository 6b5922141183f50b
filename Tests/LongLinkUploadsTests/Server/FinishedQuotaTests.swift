// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkServer
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// How much a client may leave on a disk for good.
@Suite struct FinishedQuotaTests {
  private func limits(_ change: (inout UploadLimits) -> Void) -> UploadLimits {
    var limits = UploadLimits()
    limits.maxParts = 10
    limits.maxUploadBytes = 1_000
    limits.maxClientFinishedFiles = 30
    limits.maxFinishedFiles = 50
    limits.lifetime = .seconds(30)
    change(&limits)
    return limits
  }

  private static let empty = (0..<8).map { StoreStage.file("\($0)", 0) }

  private func finish(_ stage: StoreStage, of client: String) throws {
    let id = try stage.create(Self.empty, of: client).id
    try stage.finish(id, [], of: client)
  }

  @Test func `empty files are counted, of a client and of all, and come free again evenly`() throws
  {
    var stage = try StoreStage(limits { _ in })
    // Each has 10 files with its folder and the fields.
    for _ in 0..<3 { try finish(stage, of: "a") }
    expect(.noSpace("")) { try finish(stage, of: "a") }
    // It is refused before any byte is sent, and takes no place.
    #expect(stage.store.counters.unfinished == 0 && stage.directory.names(".unfinished") == [])
    for _ in 0..<2 { try finish(stage, of: "b") }
    expect(.noSpace("")) { try finish(stage, of: "b") }
    expect(.noSpace("")) { try finish(stage, of: "c") }
    // 10 of 30 files in 10 of 30 seconds, and 50/3 of all.
    stage.now += 9_990
    expect(.noSpace("")) { try finish(stage, of: "a") }
    stage.now += 11
    try finish(stage, of: "a")
    expect(.noSpace("")) { try finish(stage, of: "a") }
  }

  @Test func `bytes are counted with a block for each file`() throws {
    let stage = try StoreStage(
      limits { $0.maxClientFinishedBytes = 2 * (1_000 + 12 * 4_096) })
    let parts = (0..<10).map { StoreStage.file("\($0)", 100) }
    for _ in 0..<2 {
      let id = try stage.create(parts).id
      try stage.append(StoreStage.bytes(1_000), to: id, at: 0)
      try stage.finish(id, StoreStage.bytes(1_000))
    }
    expect(.noSpace("")) { try stage.create([StoreStage.file("a", 0)]) }
    _ = try stage.create(parts, of: "b")
  }

  @Test func `what was created before is refused when it is finished, and can be finished later`()
    throws
  {
    var stage = try StoreStage(limits { _ in })
    let id = try stage.create([StoreStage.file("late", nil)]).id
    try stage.append([1], to: id, at: 0)
    for _ in 0..<2 { try finish(stage, of: "a") }
    _ = try stage.create(Self.empty)
    try finish(stage, of: "a")
    expect(.noSpace("")) { try stage.finish(id, [1]) }
    #expect(try stage.status(id).state == .open)
    stage.now += 5_000
    try stage.finish(id, [1])
    #expect(stage.directory.file("\(id)/late") == [1])
  }

  @Test func `a finish that fails takes nothing`() throws {
    let stage = try StoreStage(limits { _ in })
    for _ in 0..<10 {
      let id = try stage.create(Self.empty).id
      expect(.mismatch("")) { try stage.finish(id, [1]) }
      try stage.store.abort(AbortRequest(id: id), of: "a")
    }
    for _ in 0..<3 { try finish(stage, of: "a") }
  }

  @Test func `a finish whose state cannot be written takes nothing`() throws {
    let fails = Mutex(false)
    let stage = try StoreStage(limits { _ in }) { step throws(FileError) in
      guard step.path.hasSuffix("/state"), fails.withLock({ $0 }) else { return }
      throw FileError("do", step.path, errno: EIO)
    }
    let id = try stage.create(Self.empty).id
    for _ in 0..<10 {
      fails.withLock { $0 = true }
      expect(.failed(FileError("", "", errno: EIO))) { try stage.finish(id, []) }
      fails.withLock { $0 = false }
    }
    try stage.finish(id, [])
    for _ in 0..<2 { try finish(stage, of: "a") }
    expect(.noSpace("")) { try finish(stage, of: "a") }
  }

  @Test func `clients beyond a number share what they leave of the limit of all`() throws {
    var limits = UploadLimits()
    limits.maxFinishedFiles = 100_000
    let quota = FinishedQuota(limits)
    try quota.take(files: 50_000, bytes: 0, of: "large", now: 0)
    for index in 0..<12_000 {
      try quota.take(files: 3, bytes: 0, of: "\(index)", now: 0)
    }
    #expect(quota.clientCount == FinishedQuota.mostClients)
    // Not the one that has used most is forgotten.
    expect(.noSpace("")) { try quota.take(files: 50_001, bytes: 0, of: "large", now: 0) }
    expect(.noSpace("")) { try quota.take(files: 20_000, bytes: 0, of: "new", now: 0) }
  }

  // MARK: The application

  @Test func `the application sees who finishes what, and may refuse it`() async throws {
    let asked = Mutex<[FinishedUpload]>([])
    let refuses = Mutex(true)
    try await RouteStage.run(mayFinish: { upload, peer throws(Rejection) in
      asked.withLock { $0.append(upload) }
      if peer.address == nil || refuses.withLock({ $0 }) {
        throw Rejection(.forbidden, "no more photographs")
      }
    }) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      try await stage.append([1, 2], to: id, at: 0, of: client)
      // Wrong bytes are no business of the application.
      let error = await #expect(throws: LongLinkError.self) {
        try await stage.finish(id, [1, 2], of: client)
      }
      #expect(error?.response == .forbidden)
      #expect(error?.body == Array("no more photographs".utf8))
      #expect(stage.finished.list.withLock { $0.isEmpty })
      #expect(stage.directory.names() == [".finished", ".unfinished"])
      #expect(stage.receiver.counters.refused == 1 && stage.receiver.counters.unfinished == 1)
      refuses.withLock { $0 = false }
      _ = try await stage.finish(id, [1, 2], of: client)
      _ = try await stage.finish(id, [1, 2], of: client)
      let seen = asked.withLock { $0 }
      #expect(seen.count == 2 && seen.allSatisfy { $0.id == id && $0.byteCount == 2 })
      #expect(seen[0] == stage.finished.list.withLock { $0.first })
    }
  }

  @Test func `the application is not asked about bytes with another hash`() async throws {
    let asked = Mutex(0)
    try await RouteStage.run(mayFinish: { _, _ throws(Rejection) in
      asked.withLock { $0 += 1 }
    }) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      try await stage.append([1], to: id, at: 0, of: client)
      await #expect(throws: LongLinkError.self) { try await stage.finish(id, [2], of: client) }
      #expect(asked.withLock { $0 } == 0 && stage.directory.names(".unfinished") == [])
    }
  }
}
