// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkServer
import LongLinkTesting
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploads

/// Uploads that a later process goes on with.
@Suite(.timeLimit(.minutes(5))) struct RecordTests {
  private func failure(_ upload: Upload) async -> UploadError? {
    do {
      _ = try await upload.receipt
      return nil
    } catch {
      return error
    }
  }

  /// Starts an upload, and stops it as a process that dies: nothing is told to the server.
  private func interrupt(
    _ stage: UploadStage, _ body: [UploadPart], _ options: UploadOptions, at count: Int
  ) async {
    let client: LongLinkClient
    do {
      client = try LongLinkClient(
        to: Endpoint(UploadStage.address), on: stage.simulation.mainLoop)
    } catch {
      Issue.record(error)
      return
    }
    let upload = Mutex<Upload?>(nil)
    stage.uploads.script.onItem = { bytes in
      if bytes >= count { stage.simulation.spawn { await client.close() } }
    }
    let started = Uploader(client).start(body, options: options)
    upload.withLock { $0 = started }
    #expect(await failure(started) != nil)
    stage.uploads.script.onItem = nil
    await client.close()
  }

  @Test func `a record has as long a name as a file may have`() async throws {
    let folder = try TemporaryFolder()
    try await UploadStage.run { stage in
      for name in [String(repeating: "r", count: 255), String(repeating: "ä", count: 127)] {
        let body: [UploadPart] = [.bytes("f", fileName: "f", [1])]
        let options = UploadOptions(record: folder.path(name))
        _ = try await stage.uploader.upload(body, options: options)
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
      #expect(left.isEmpty)
    }
  }

  @Test func `a later process sends only what the server lacks`() async throws {
    let folder = try TemporaryFolder()
    let bytes = sampleBytes(1_000_000)
    let path = try folder.write("file", bytes)
    let record = folder.path("record")
    try await UploadStage.run { stage in
      let body: [UploadPart] = [.field("title", "a\"%\n"), .file("f", at: path)]
      let options = UploadOptions(record: record)
      await interrupt(stage, body, options, at: 300_000)
      let attributes = try FileManager.default.attributesOfItem(atPath: record)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let had = try #require(stage.uploads.only?.bytes.count)
      #expect(300_000..<1_000_000 ~= had)
      let before = stage.uploads.received
      let upload = stage.uploader.start(body, options: options)
      let first = Mutex<UploadProgress?>(nil)
      for await progress in upload.progress() {
        first.withLock { first in if first == nil { first = progress } }
      }
      let receipt = try await upload.receipt
      #expect(receipt.id == stage.uploads.onlyID)
      #expect(stage.uploads.only?.bytes == Array("a\"%\n".utf8) + bytes)
      #expect(stage.uploads.only?.isFinished == true)
      #expect(stage.uploads.received - before == bytes.count + 4 - had)
      #expect(first.withLock { $0?.stored } == UInt64(had))
      #expect(stage.uploads.count(12) == 1)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["file"])
    }
  }

  @Test func `a process that died before the answer to its create finds its upload`() async throws {
    let folder = try TemporaryFolder()
    let options = UploadOptions(record: folder.path("record"), patience: .seconds(1))
    try await UploadStage.run { stage in
      let body: [UploadPart] = [.field("a", "b")]
      stage.uploads.script.lostAnswers = [12: 100]
      let error = await failure(stage.uploader.start(body, options: options))
      #expect(error?.code == .unreachable, "\(String(describing: error))")
      stage.uploads.script.lostAnswers = [:]
      _ = try await stage.uploader.upload(body, options: options)
      #expect(stage.uploads.only?.isFinished == true)
    }
  }

  @Test func `a process that died before the answer to its finish hears it again`() async throws {
    let folder = try TemporaryFolder()
    let options = UploadOptions(record: folder.path("record"), patience: .seconds(1))
    try await UploadStage.run { stage in
      let body: [UploadPart] = [.bytes("f", fileName: "f", sampleBytes(100_000))]
      stage.uploads.script.lostAnswers = [15: 100]
      let error = await failure(stage.uploader.start(body, options: options))
      #expect(error?.code == .unreachable, "\(String(describing: error))")
      #expect(stage.uploads.only?.isFinished == true)
      stage.uploads.script.lostAnswers = [:]
      let receipt = try await stage.uploader.upload(body, options: options)
      #expect(receipt.names == ["f"])
      #expect(stage.uploads.received == 100_000)
    }
  }

  @Test func `a record of other parts is refused`() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("file", sampleBytes(1_000_000))
    let options = UploadOptions(record: folder.path("record"))
    try await UploadStage.run { stage in
      let body: [UploadPart] = [.file("f", at: path)]
      await interrupt(stage, body, options, at: 100_000)
      let before = try Data(contentsOf: URL(filePath: folder.path("record")))
      let others: [[UploadPart]] = [
        [.file("g", at: path)], [.file("f", at: path, fileName: "other")],
        [.file("f", at: path, range: 0..<999_999)],
        [.file("f", at: path), .field("a", "b")], [.field("f", "b")],
      ]
      for other in others {
        let error = await failure(stage.uploader.start(other, options: options))
        #expect(error?.code == .otherRecord)
        #expect(error?.path == folder.path("record"))
      }
      try folder.append([1], to: path)
      #expect(await failure(stage.uploader.start(body, options: options))?.code == .otherRecord)
      // Nothing was done to the upload or to its record.
      #expect(try Data(contentsOf: URL(filePath: folder.path("record"))) == before)
      #expect(stage.uploads.only?.generation == 1)
    }
  }

  @Test func `an upload that found no space goes on later`() async throws {
    let folder = try TemporaryFolder()
    let options = UploadOptions(record: folder.path("record"))
    try await UploadStage.run { stage in
      stage.uploads.script.mostAppend = 300_000
      stage.uploads.script.onItem = { [uploads = stage.uploads] count in
        if count == 300_000 { uploads.script.rejections[14] = [Rejection(507)] }
      }
      let body: [UploadPart] = [.bytes("f", fileName: "f", sampleBytes(500_000))]
      #expect(await failure(stage.uploader.start(body, options: options))?.code == .noSpace)
      stage.uploads.script.onItem = nil
      _ = try await stage.uploader.upload(body, options: options)
      #expect(stage.uploads.only?.isFinished == true)
      #expect(stage.uploads.received == 500_000)
    }
  }

  @Test func `an upload that the server has forgotten begins anew`() async throws {
    let folder = try TemporaryFolder()
    let options = UploadOptions(record: folder.path("record"))
    try await UploadStage.run { stage in
      let bytes = sampleBytes(1_000_000)
      let body: [UploadPart] = [.bytes("f", fileName: "f", bytes)]
      await interrupt(stage, body, options, at: 100_000)
      let key = stage.uploads.only?.request.key
      stage.uploads.forgetAll()
      _ = try await stage.uploader.upload(body, options: options)
      #expect(stage.uploads.only?.bytes == bytes)
      #expect(stage.uploads.only?.request.key != key)
    }
  }

  @Test func `what is no record is refused, and one that cannot be written fails`() async throws {
    let folder = try TemporaryFolder()
    let whole = UploadRecord(key: "k", id: "i", generation: 7, parts: ["a", "b"])
    #expect(UploadRecord(whole.bytes) == whole)
    for count in 0..<whole.bytes.count {
      #expect(UploadRecord(Array(whole.bytes[..<count])) == nil)
    }
    try await UploadStage.run { stage in
      let body: [UploadPart] = [.field("a", "b")]
      for content in ["", "x", "longlink upload record 2\n"] {
        let path = try folder.write("record", Array(content.utf8))
        let options = UploadOptions(record: path)
        #expect(await failure(stage.uploader.start(body, options: options))?.code == .otherRecord)
      }
      for path in [folder.path("none/record"), folder.url.path] {
        let options = UploadOptions(record: path)
        #expect(await failure(stage.uploader.start(body, options: options))?.code == .recordFailed)
      }
      #expect(stage.uploads.count(12) == 0)
    }
  }
}
