// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import LongLinkTesting
import LongLinkUploadMessages
import LongLinkUploads
import Synchronization
import Testing

/// Uploads that are interrupted.
@Suite(.timeLimit(.minutes(3))) struct ResumeTests {
  private static let window = 8 << 20

  private func failure(_ upload: Upload) async -> UploadError? {
    do {
      _ = try await upload.receipt
      return nil
    } catch {
      return error
    }
  }

  /// Does something each time after so many bytes more.
  private func every(_ count: Int, _ work: @escaping @Sendable () -> Void)
    -> @Sendable (Int) -> Void
  {
    let next = Mutex(count)
    return { bytes in
      let isDue = next.withLock { next in
        guard bytes >= next else { return false }
        next = bytes + count
        return true
      }
      if isDue { work() }
    }
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `an upload goes on after lost connections`(seed: UInt64) async throws {
    let folder = try TemporaryFolder()
    let bytes = sampleBytes(2_000_000, seed: seed)
    let path = try folder.write("file", bytes)
    try await UploadStage.run(seed: seed) { stage in
      let step = 100_000 + Int(stage.simulation.random() % 400_000)
      stage.simulation.network.conditions = .unsteady
      stage.uploads.script.mostAppend = 500_000
      stage.uploads.script.forgetsCutAppends = seed % 2 == 0
      stage.uploads.script.onItem = every(step) { stage.simulation.network.loseAllLinks() }
      let receipt = try await stage.uploader.upload([.file("f", at: path)])
      #expect(stage.uploads.only?.bytes == bytes)
      #expect(receipt.size == 2_000_000)
      #expect(stage.uploads.count(13) > 0)
    }
  }

  @Test func `a sequence is made again from where the server is`() async throws {
    try await UploadStage.run { stage in
      let bytes = sampleBytes(900_000)
      let offsets = Mutex<[Int]>([])
      stage.uploads.script.mostAppend = 300_000
      stage.uploads.script.onItem = every(250_000) { stage.simulation.network.loseAllLinks() }
      let live = UploadContent.sequence { offset in
        offsets.withLock { $0.append(Int(offset)) }
        return Pieces(bytes: Array(bytes[Int(offset)...]), size: 10_000)
      }
      _ = try await stage.uploader.upload(
        [.field("title", "live"), UploadPart("f", fileName: "f", live)])
      #expect(stage.uploads.only?.bytes == Array("live".utf8) + bytes)
      let made = offsets.withLock { $0 }
      // Once at first, and then only after a loss, at offsets of appends.
      #expect(made.first == 0)
      #expect((2...(1 + stage.uploads.count(13))).contains(made.count))
      let begins = stage.uploads.state.withLock { $0.appends.map { Int($0.offset) - 4 } }
      #expect(made.dropFirst().allSatisfy { begins.contains($0) })
    }
  }

  @Test(arguments: [SimulatedProcess.Crash.process, .machine])
  func `an upload goes on after a restart of the server`(
    _ crash: SimulatedProcess.Crash
  ) async throws {
    try await UploadStage.run { stage in
      let bytes = sampleBytes(1_000_000)
      stage.uploads.script.onItem = every(300_000) {
        stage.server.crash(crash)
        stage.simulation.spawn {
          try await stage.simulation.sleep(for: .seconds(20))
          try await stage.server.start()
        }
      }
      let upload = stage.uploader.start([.bytes("f", fileName: "f", bytes)])
      _ = try await upload.receipt
      #expect(stage.uploads.only?.bytes == bytes)
      #expect(stage.uploads.count(12) == 1)
    }
  }

  @Test func `a silent connection is noticed, and its late bytes are not mixed in`() async throws {
    try await UploadStage.run { stage in
      let bytes = sampleBytes(1_000_000)
      stage.uploads.script.onItem = every(400_000) {
        for link in stage.simulation.network.links { link.silence(.both) }
      }
      _ = try await stage.uploader.upload([.bytes("f", fileName: "f", bytes)])
      let upload = try #require(stage.uploads.only)
      #expect(upload.bytes == bytes)
      #expect(upload.generation > 1)
    }
  }

  @Test(arguments: [12, 13, 14, 15] as [MessageType])
  func `a lost answer is asked for again`(type: MessageType) async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.lostAnswers = [14: 1]
      stage.uploads.script.lostAnswers[type] = 1
      let bytes = sampleBytes(200_000)
      _ = try await stage.uploader.upload([.bytes("f", fileName: "f", bytes)])
      #expect(stage.uploads.only?.bytes == bytes)
      #expect(stage.uploads.only?.isFinished == true)
      // What the server had was not sent again.
      #expect(stage.uploads.received == 200_000)
    }
  }

  @Test func `a conflict leads to the offset of the server`() async throws {
    let bytes = sampleBytes(300_000)
    for place in [0, 10, 100_000] {
      try await UploadStage.run { stage in
        stage.uploads.script.mostAppend = 100_000
        let once = Mutex(true)
        stage.uploads.script.onAppend = { offset in
          guard offset == 200_000,
            once.withLock({
              let first = $0; $0 = false; return first
            })
          else { return }
          stage.uploads.change { $0.bytes = Array(bytes[..<place]) }
        }
        _ = try await stage.uploader.upload([.bytes("f", fileName: "f", bytes)])
        #expect(stage.uploads.only?.bytes == bytes)
        #expect(stage.uploads.count(13) == 0)
        #expect(stage.uploads.received == 300_000 + 200_000 - place)
      }
    }
  }

  @Test func `conflicts without end are not repeated without end`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.onAppend = { offset in
        stage.uploads.change { $0.bytes = offset == 0 ? [1] : [] }
      }
      let upload = stage.uploader.start([.bytes("f", fileName: "f", sampleBytes(10))])
      #expect(await failure(upload)?.code == .unreachable)
      #expect(stage.uploads.count(14) < 200)
    }
  }

  @Test func `another client that takes over ends the upload`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.mostAppend = 1_000
      stage.uploads.script.onAppend = { offset in
        if offset == 5_000 { stage.uploads.change { $0.generation += 1 } }
      }
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(10_000))])
      #expect(await failure(upload)?.code == .takenOver)
      #expect(stage.uploads.only?.bytes.count == 5_000)
    }
  }

  @Test func `an upload that the server has forgotten begins anew, but not for ever`() async throws
  {
    try await UploadStage.run { stage in
      let bytes = sampleBytes(100_000)
      let left = Mutex(2)
      stage.uploads.script.mostAppend = 10_000
      stage.uploads.script.onAppend = { offset in
        guard offset == 50_000,
          left.withLock({
            $0 -= 1; return $0 >= 0
          })
        else { return }
        stage.uploads.forgetAll()
      }
      _ = try await stage.uploader.upload([.bytes("f", fileName: "f", bytes)])
      #expect(stage.uploads.only?.bytes == bytes)
      #expect(stage.uploads.count(12) == 3)
      stage.uploads.script.onAppend = { _ in stage.uploads.forgetAll() }
      let upload = stage.uploader.start([.bytes("f", fileName: "f", bytes)])
      #expect(await failure(upload)?.code == .forgotten)
    }
  }

  @Test func `a server that stays away ends the upload after its patience`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.onItem = every(100_000) { stage.server.crash() }
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(1_000_000))],
        options: UploadOptions(patience: .seconds(30)))
      let error = await failure(upload)
      #expect(error?.code == .unreachable)
      #expect(error?.link != nil)
      #expect(29...32 ~= stage.simulation.now.nanoseconds / 1_000_000_000)
    }
  }

  @Test func `a connection that is always lost is no success`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.forgetsCutAppends = true
      stage.uploads.script.onItem = { _ in stage.simulation.network.loseAllLinks() }
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(1_000_000))])
      #expect(await failure(upload)?.code == .unreachable)
      #expect(59...80 ~= stage.simulation.now.nanoseconds / 1_000_000_000)
    }
  }

  @Test func `a server that answers and keeps nothing ends the upload, with pauses before`()
    async throws
  {
    try await UploadStage.run { stage in
      stage.uploads.script.keepsNothing = true
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(100_000))])
      let error = await failure(upload)
      #expect(error?.code == .unreachable)
      #expect(error.map { "\($0)" } == "no progress: the server stores no further bytes")
      #expect(59...63 ~= stage.simulation.now.nanoseconds / 1_000_000_000)
      // Each pause is longer than the one before, up to 5 s.
      #expect((10...40).contains(stage.uploads.count(14)))
    }
  }

  @Test func `a server that keeps a byte now and then ends the upload as well`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.mostAppend = 1
      stage.uploads.script.delay[14] = .milliseconds(20)
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(100_000))])
      #expect(await failure(upload)?.code == .unreachable)
      #expect(59...63 ~= stage.simulation.now.nanoseconds / 1_000_000_000)
    }
  }

  @Test func `a slow sequence and a rate limit are not the server's fault`() async throws {
    try await UploadStage.run { stage in
      let slow = UploadContent.sequence { offset in
        AsyncThrowingStream<[UInt8], any Error> { continuation in
          stage.simulation.spawn {
            for byte in Int(offset)..<40 {
              try await stage.simulation.sleep(for: .seconds(10))
              continuation.yield([UInt8(byte)])
            }
            continuation.finish()
          }
        }
      }
      stage.uploads.script.mostAppend = 7
      let receipt = try await stage.uploader.upload(
        [UploadPart("f", fileName: "f", slow)])
      #expect(receipt.size == 40 && stage.uploads.only?.bytes == Array(0..<40))
      stage.uploads.forgetAll()
      var options = UploadOptions()
      options.bytesPerSecond = 5
      _ = try await stage.uploader.upload(
        [.bytes("f", fileName: "f", sampleBytes(600))], options: options)
      #expect(stage.uploads.only?.bytes.count == 600)
    }
  }

  @Test func `a server that does not answer an append is asked how far it is`() async throws {
    try await UploadStage.run { stage in
      stage.uploads.script.delay[14] = .seconds(1_000)
      var options = UploadOptions()
      options.answerTimeout = .seconds(5)
      let bytes = sampleBytes(10_000)
      let start = stage.simulation.now
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", bytes)], options: options)
      try await stage.simulation.sleep(for: .seconds(2))
      #expect(stage.uploads.count(14) == 1)
      stage.uploads.script.delay[14] = nil
      let receipt = try await upload.receipt
      #expect(receipt.size == 10_000 && stage.uploads.only?.bytes == bytes)
      let seconds = (stage.simulation.now - start) / 1_000_000_000
      #expect((5...10).contains(seconds))
      #expect(stage.uploads.count(14) == 2 && stage.uploads.count(13) == 1)
    }
  }

  @Test func `an answer has a minute, unless the options say otherwise`() {
    #expect(UploadOptions().answerTimeout == .seconds(60))
  }
}
