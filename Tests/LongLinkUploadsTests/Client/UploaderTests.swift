// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import LongLinkTesting
import LongLinkUploadMessages
import LongLinkUploads
import Synchronization
import Testing

/// Uploads that nothing disturbs, and what the server says to them.
@Suite(.timeLimit(.minutes(5))) struct UploaderTests {
  private func failure(_ upload: Upload) async -> UploadError? {
    do {
      _ = try await upload.receipt
      return nil
    } catch {
      return error
    }
  }

  @Test func `all parts arrive, and the receipt says how they are called`() async throws {
    let folder = try TemporaryFolder()
    let file = sampleBytes(3_000_000)
    let path = try folder.write("harbour.jpg", file)
    try await UploadStage.run { stage in
      let live = sampleBytes(70_000, seed: 2)
      let receipt = try await stage.uploader.upload(
        [
          .field("title", "night"), .file("photo", at: path), .bytes("e", fileName: "empty", []),
          UploadPart("live", fileName: "live", .pieces(live, length: nil)),
        ])
      let upload = try #require(stage.uploads.only)
      #expect(upload.isFinished)
      #expect(upload.bytes == Array("night".utf8) + file + live)
      let expected = [
        Part(field: "title", size: 5),
        Part(field: "photo", fileName: "harbour.jpg", contentType: "image/jpeg", size: 3_000_000),
        Part(field: "e", fileName: "empty", contentType: "application/octet-stream", size: 0),
        Part(field: "live", fileName: "live", contentType: "application/octet-stream", size: nil),
      ]
      #expect(upload.request.parts == expected)
      #expect(receipt.id == stage.uploads.onlyID)
      #expect(receipt.names == ["", "harbour.jpg", "empty", "live"])
      #expect(receipt.size == 3_070_005)
    }
  }

  @Test(arguments: [0, 1, 99, 100, 101, 1_000] as [Int])
  func `an append has as many bytes as the server takes`(count: Int) async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.mostAppend = 100
      let bytes = sampleBytes(count)
      let body: [UploadPart] = [
        UploadPart("f", fileName: "f", .pieces(bytes, length: nil, size: 7))
      ]
      _ = try await stage.uploader.upload(body)
      #expect(stage.uploads.only?.bytes == bytes)
      let appends = stage.uploads.state.withLock { $0.appends }
      #expect(appends.allSatisfy { $0.count <= 100 })
      #expect(appends.count == (count + 99) / 100)
    }
  }

  @Test func `at most four uploads run at once`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.delay[UploadMethods.append] = .seconds(10)
      let uploads = (0..<9).map { number in
        // Also if each has an uploader of its own.
        stage.uploader.start([.bytes("f", fileName: "\(number)", sampleBytes(10))])
      }
      uploads[5].cancel()
      for (number, upload) in uploads.enumerated() where number != 5 {
        let receipt = try await upload.receipt
        #expect(receipt.names == ["\(number)"])
      }
      #expect(await failure(uploads[5])?.code == .cancelled)
      #expect(stage.uploads.state.withLock { $0.mostRunning } == 4)
      #expect(stage.uploads.count(12) == 8)
      // Two rounds of ten seconds.
      #expect(stage.simulation.now.nanoseconds / 1_000_000_000 == 20)
    }
  }

  @Test func `the codes of the server are errors with names`() async throws {
    let expected: [(MessageType, ResponseCode, UploadError.Code)] = [
      (12, 400, .rejected), (12, 413, .tooLarge), (12, 507, .noSpace), (12, 1_234, .rejected),
      (14, 507, .noSpace), (14, 413, .tooLarge), (15, 422, .damaged), (15, 500, .rejected),
    ]
    for (type, code, error) in expected {
      try await UploadStage.run { stage in
        stage.uploads.script.rejections[type] = [Rejection(code, "no")]
        let upload = stage.uploader.start(
          [.bytes("f", fileName: "f", sampleBytes(1_000_000))])
        let failure = await failure(upload)
        #expect(failure?.code == error)
        #expect(failure?.link?.response == code)
        #expect(stage.uploads.count(type) == 1)
      }
    }
  }

  @Test func `a server without uploads rejects them`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
      let upload = Uploader(client).start([.field("a", "b")])
      #expect(await failure(upload)?.code == .rejected)
      await client.close()
      await server.stop()
    }
  }

  @Test func `an overloaded server is asked again, for a minute`() async throws {
    try await UploadStage.run { stage in
      let busy = Rejection(.overloaded, retryAfter: .seconds(3))
      stage.uploads.script.rejections[12] = [busy, busy]
      stage.uploads.script.rejections[14] = [busy, Rejection(.draining)]
      _ = try await stage.uploader.upload([.field("a", "b")])
      #expect(stage.uploads.only?.isFinished == true)
      stage.uploads.script.rejections[12] = Array(repeating: busy, count: 100)
      let before = stage.simulation.now
      let error = await failure(stage.uploader.start([.field("a", "b")]))
      #expect(error?.code == .tooManyUploads)
      let seconds = before.duration(to: stage.simulation.now) / .seconds(1)
      #expect(59...64 ~= seconds)
    }
  }

  @Test(arguments: ["", "-", "a\nb", "a b", "é", "\u{1B}[2J", String(repeating: "a", count: 129)])
  func `an ID that a record or a terminal would misread ends the upload`(
    prefix: String
  ) async throws {
    let folder = try TemporaryFolder()
    try await UploadStage.run { stage in
      stage.uploads.script.prefix = prefix
      let upload = stage.uploader.start(
        [.field("a", "b")], options: UploadOptions(record: folder.path("record")))
      let code = await failure(upload)?.code
      // The number alone is one.
      #expect(code == (prefix.isEmpty ? nil : .damaged))
    }
  }

  @Test func `a server that takes no bytes at once gets them one by one`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.mostAppend = 0
      _ = try await stage.uploader.upload([.field("a", "bcd")])
      #expect(stage.uploads.only?.bytes == Array("bcd".utf8))
      #expect(stage.uploads.state.withLock { $0.appends.count } == 3)
    }
  }

  @Test func `an offset that makes no sense ends the upload`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.rejections[14] = [
        Rejection(409, body: try AppendConflict(offset: 11, generation: 1).encodedBytes())
      ]
      let upload = stage.uploader.start([.bytes("f", fileName: "f", sampleBytes(10))])
      #expect(await failure(upload)?.code == .damaged)
    }
  }

  @Test func `a cancelled upload ends at once, and is removed only where asked for`() async throws {
    for aborts in [false, true] {
      try await UploadStage.run { stage in
        stage.uploads.script.delay[15] = .seconds(100)
        let upload = stage.uploader.start(
          [.field("a", "b")], options: UploadOptions(abortsOnCancel: aborts))
        try await stage.simulation.sleep(for: .seconds(5))
        upload.cancel()
        let before = stage.simulation.now
        #expect(await failure(upload)?.code == .cancelled)
        #expect(before.duration(to: stage.simulation.now) < .seconds(1))
        #expect((stage.uploads.only == nil) == aborts)
      }
    }
  }

  @Test func `a file that changes meanwhile fails by its name`() async throws {
    let folder = try TemporaryFolder()
    for part in 0..<2 {
      let first = try folder.write("first", sampleBytes(1_000_000))
      let second = try folder.write("second", sampleBytes(1_000_000))
      try await UploadStage.run { stage in
        let path = part == 0 ? first : second
        stage.uploads.script.onItem = { count in
          // The first file has been sent by then, and is not looked at again for its bytes.
          if count >= 1_500_000 { try? folder.append([1], to: path) }
        }
        let upload = stage.uploader.start(
          [.file("a", at: first), .file("b", at: second)])
        let error = await failure(upload)
        #expect(error?.code == .fileGrew)
        #expect(error?.path == path)
        #expect(stage.uploads.only?.isFinished == false)
      }
    }
  }
}
