// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// What a client that means harm can make a server hold, flush and log.
@Suite struct AbuseTests {
  private func code(_ call: () async throws -> some Any) async -> ResponseCode? {
    do {
      _ = try await call()
      return nil
    } catch {
      return (error as? LongLinkError)?.response
    }
  }

  // MARK: Memory

  @Test func `finished uploads of all clients are remembered up to a number`() throws {
    let stage = try StoreStage()
    let records = 10_050
    for index in 0..<records {
      let record = StoredFinish(
        expiresAtMs: UInt64(index), key: "\(index)", principal: "client \(index % 100)")
      stage.store.remember(record, "\(index)")
    }
    #expect(stage.store.counters.remembered == 10_000)
    let (isOldestKept, keys) = stage.store.table.withLock { table in
      ((0..<50).contains { table.finished["\($0)"] != nil }, table.keys.count)
    }
    #expect(!isOldestKept && keys == 10_000)
    #expect(stage.store.table.withLock { $0.finished["\(records - 1)"] != nil })
    for index in 50..<records { stage.store.forgetFinish("\(index)") }
    #expect(stage.store.counters.remembered == 0)
    #expect(stage.store.table.withLock { $0.keys.isEmpty })
  }

  @Test func `bytes that wait to be written are bounded, and come free again`() async throws {
    #expect(UploadLimits.mostWaitingBytes == 64 << 20)
    let waiting = WaitingBytes(1_000)
    try await RouteStage.run(waiting: waiting) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let request = AppendRequest(id: id, generation: 1, offset: 0)
      let error = await #expect(throws: LongLinkError.self) {
        try await client.sendItems(UploadMethods.append, request) { writer in
          try await writer.write([UInt8](repeating: 1, count: 600))
          try await writer.write([UInt8](repeating: 2, count: 1_001))
          try await stage.simulation.sleep(for: .seconds(1))
        }
      }
      #expect(error?.response == .overloaded)
      #expect(waiting.take(1_000), "all of it is free again")
      waiting.giveBack(1_000)
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 600)
      #expect(try await stage.append([3], to: id, at: 600, of: client) == 601)
    }
  }

  @Test func `a request that is too large is not even decoded`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      // Two bytes each on the wire, and a hundred once decoded.
      let parts = (0..<200_000).map { _ in Part() }
      #expect(
        await code { try await client.request(UploadMethods.create, CreateRequest(parts: parts)) }
          == 413)
      let id = String(repeating: "x", count: 5_000)
      #expect(
        await code { try await client.request(UploadMethods.status, StatusRequest(id: id)) } == 413)
      #expect(
        await code { try await client.request(UploadMethods.abort, AbortRequest(id: id)) } == 413)
      let finish = FinishRequest(id: id, sha256: [UInt8](repeating: 0, count: 32))
      #expect(await code { try await client.request(UploadMethods.finish, finish) } == 413)
      #expect(await code { try await stage.append([1], to: id, at: 0, of: client) } == 413)
      #expect(stage.receiver.counters.tooLarge == 5)
    }
  }

  // MARK: Flushes

  /// The steps that make something durable.
  private final class Flushes: Sendable {
    private let steps = Mutex<[FileStep]>([])

    var probe: FileProbe {
      { step in
        if step.action == .sync || step.action == .syncFolder {
          self.steps.withLock { $0.append(step) }
        }
      }
    }

    /// The paths without the ID, in their order.
    func take(_ id: String) -> [String] {
      steps.withLock { steps in
        defer { steps = [] }
        return steps.map { $0.path.replacingOccurrences(of: id, with: "ID") }
      }
    }
  }

  @Test func `many small parts are flushed once each, and their folder once in all`() throws {
    let flushes = Flushes()
    let stage = try StoreStage(probe: flushes.probe)
    let parts = (0..<100).map { StoreStage.file("\($0)", 10) }
    let id = try stage.create(parts).id
    #expect(flushes.take(id).suffix(4).count == 4)
    let bytes = StoreStage.bytes(1_000)
    // However many appends there are, a part that has come whole is not flushed again.
    try stage.append(Array(bytes[..<405]), to: id, at: 0)
    let first = flushes.take(id)
    let folder = ".unfinished/ID/files"
    #expect(first.count == 41 + 1 + 1)
    let paths = (0...40).map { "\(folder)/\($0)" } + [folder, ".unfinished/ID/state"]
    #expect(Set(first) == Set(paths))
    #expect(first.last == ".unfinished/ID/state")
    try stage.append(Array(bytes[405...]), to: id, at: 405)
    #expect(flushes.take(id).count == 60 + 1 + 1)
    try stage.finish(id, bytes)
    #expect(
      flushes.take(id) == [
        ".unfinished/ID/fields/fields.json", folder, ".unfinished/ID/state", "", ".finished/.ID",
        ".finished", ".unfinished/ID",
      ])
  }

  @Test func `what could not be flushed is not acknowledged, though the next flush succeeds`()
    throws
  {
    let fails = Mutex(false)
    let stage = try StoreStage { step throws(FileError) in
      guard step.action == .sync, step.path.hasSuffix("/3"), fails.withLock({ $0 }) else { return }
      // A system reports once that bytes were lost.
      fails.withLock { $0 = false }
      throw FileError("flush", step.path, errno: EIO)
    }
    let id = try stage.create((0..<20).map { StoreStage.file("\($0)", 10) }).id
    fails.withLock { $0 = true }
    expect(.failed(FileError("", "", errno: EIO))) {
      try stage.append(StoreStage.bytes(200), to: id, at: 0)
    }
    #expect(try stage.status(id).offset == 0)
    #expect(stage.store.counters.unfinishedBytes == 0)
    try stage.append(StoreStage.bytes(200), to: id, at: 0)
    try stage.finish(id, StoreStage.bytes(200))
  }

  // MARK: The log

  @Test func `what a client names is escaped and cut in the log`() async throws {
    let directory = UploadDirectory()
    try await RouteStage.run(in: directory) { stage in
      let client = try stage.client()
      let name =
        "a\n2026-01-01 critical: FORGED\u{1B}[31m\u{202E}" + String(repeating: "x", count: 900)
      let parts = [Part(field: name, fileName: name, contentType: name)]
      let id = try await client.request(UploadMethods.create, CreateRequest(parts: parts)).id
      // The file cannot be made: its name is in the error.
      let kept = PartLayout(parts).entries[0].name
      try FileManager.default.createDirectory(
        atPath: "\(directory.path)/.unfinished/\(id)/files/\(kept)",
        withIntermediateDirectories: false)
      for _ in 0..<50 {
        #expect(await code { try await stage.append([1], to: id, at: 0, of: client) } == 500)
      }
      // An ID is whatever a client says.
      for _ in 0..<50 {
        let request = StatusRequest(id: name)
        #expect(await code { try await client.request(UploadMethods.status, request) } == 404)
        #expect(await code { try await stage.finish(name, [], of: client) } == 404)
      }
      let lines = stage.log.all.filter { $0.message.contains("upload") }
      // Five of a kind at once, and then three a minute.
      #expect((1...8).contains(lines.count))
      for line in lines {
        #expect(line.metadata.values.allSatisfy { $0.utf8.count <= 300 })
        for text in line.metadata.values {
          #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{202E}" })
        }
      }
      #expect(lines.contains { $0.metadata["error"]?.contains("FORGED") == true })
    }
  }

  @Test func `wrong hashes in a loop log a few lines`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      for _ in 0..<50 {
        let id = try await stage.create(of: client)
        try await stage.append([1], to: id, at: 0, of: client)
        #expect(await code { try await stage.finish(id, [2], of: client) } == 422)
        #expect(await code { try await stage.finish(id, [1], of: client) } == 404)
      }
      #expect(stage.log.all.count { $0.message.contains("upload") } <= 8)
      #expect(stage.receiver.counters.mismatched == 50 && stage.receiver.counters.unfinished == 0)
      #expect(stage.directory.names(".unfinished").isEmpty)
    }
  }
}
