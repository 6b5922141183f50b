// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

@testable import LongLinkUploads

/// What a person sees of an upload.
@Suite(.timeLimit(.minutes(5))) struct ProgressTests {
  /// All values, with the virtual time of each.
  private final class Values: Sendable {
    private let values = Mutex<[(at: LinkInstant, progress: UploadProgress)]>([])

    var all: [(at: LinkInstant, progress: UploadProgress)] { values.withLock { $0 } }

    func add(_ progress: UploadProgress, at now: LinkInstant) {
      values.withLock { $0.append((now, progress)) }
    }
  }

  private func check(_ values: [(at: LinkInstant, progress: UploadProgress)], total: UInt64) {
    for (index, value) in values.enumerated() {
      #expect(value.progress.stored <= value.progress.sent)
      #expect(value.progress.sent <= total)
      guard index > 0 else { continue }
      let last = values[index - 1].progress
      #expect(value.progress.sent >= last.sent && value.progress.stored >= last.stored)
      // Of eleven values, the last comes more than a second behind the first.
      if index >= 10 { #expect(value.at - values[index - 10].at >= 1_000_000_000) }
    }
    #expect(values.last?.progress.sent == total)
    #expect(values.last?.progress.isComplete == true)
    #expect(values.last?.progress.timeLeft == .zero)
  }

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func `progress never goes back, and ends at the total`(seed: UInt64) async throws {
    try await UploadStage.run(seed: seed) { stage in
      let simulation = stage.simulation
      simulation.network.conditions = LinkConditions(bandwidth: 100_000)
      stage.uploads.script.mostAppend = 100_000
      stage.uploads.script.forgetsCutAppends = true
      if seed > 1 {
        let next = Mutex(150_000)
        stage.uploads.script.onItem = { count in
          let isDue = next.withLock { next in
            guard count > next else { return false }
            next += 170_000
            return true
          }
          if isDue, seed == 5, 300_000..<450_000 ~= count { stage.uploads.forgetAll() }
          if isDue { simulation.network.loseAllLinks() }
        }
      }
      let values = Values()
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(1_000_000))],
        options: UploadOptions(onProgress: { values.add($0, at: simulation.now) }))
      var last: UploadProgress?
      for await progress in upload.progress() {
        if let last { #expect(progress.sent >= last.sent && progress.stored >= last.stored) }
        last = progress
      }
      _ = try await upload.receipt
      check(values.all, total: 1_000_000)
      #expect(values.all.count > 25)
      #expect(last == values.all.last?.progress)
      // Somebody who asks later gets the last value.
      var late: [UploadProgress] = []
      for await progress in upload.progress() { late.append(progress) }
      #expect(late == [values.all.last?.progress])
    }
  }

  @Test func `the rate and the time left are about right`() async throws {
    try await UploadStage.run { stage in
      let simulation = stage.simulation
      let values = Values()
      _ = try await stage.uploader.upload(
        [.bytes("f", fileName: "f", sampleBytes(1_000_000))],
        options: UploadOptions(
          bytesPerSecond: 50_000, onProgress: { values.add($0, at: simulation.now) }))
      let end = simulation.now
      for (at, progress) in values.all where at.nanoseconds > 5_000_000_000 {
        guard let rate = progress.bytesPerSecond, let left = progress.timeLeft else {
          Issue.record("nothing is known after five seconds")
          return
        }
        #expect(40_000...60_000 ~= rate)
        // A second's worth may be on its way.
        #expect(abs(left / .seconds(1) - at.duration(to: end) / .seconds(1)) < 4)
      }
    }
  }

  @Test func `a slow reader gets the latest value`() async throws {
    try await UploadStage.run { stage in
      let upload = stage.uploader.start(
        [.bytes("f", fileName: "f", sampleBytes(1_000_000))],
        options: UploadOptions(bytesPerSecond: 100_000))
      var reader = upload.progress().makeAsyncIterator()
      _ = await reader.next()
      try await stage.simulation.sleep(for: .seconds(5))
      let value = try #require(await reader.next())
      #expect(400_000...600_000 ~= value.sent)
      _ = try await upload.receipt
      #expect(await reader.next()?.isComplete == true)
      #expect(await reader.next() == nil)
    }
  }

  @Test func `the total is unknown until a sequence ends`() async throws {
    try await UploadStage.run { stage in
      let values = Values()
      let simulation = stage.simulation
      _ = try await stage.uploader.upload(
        [UploadPart("f", fileName: "f", .pieces(sampleBytes(300_000), length: nil))],
        options: UploadOptions(
          bytesPerSecond: 100_000, onProgress: { values.add($0, at: simulation.now) }))
      #expect(values.all.dropLast().allSatisfy { $0.progress.total == nil })
      check(values.all, total: 300_000)
    }
  }

  @Test(arguments: [1_000, 33_333, 1_000_000])
  func `a throttle holds in every second, and an append has a second's worth`(
    rate: Int
  ) async throws {
    try await UploadStage.run { stage in
      let simulation = stage.simulation
      let times = Mutex<[(at: Int64, count: Int)]>([])
      stage.uploads.script.onItem = { count in
        times.withLock { $0.append((simulation.now.nanoseconds, count)) }
      }
      let count = rate * 7
      _ = try await stage.uploader.upload(
        [.bytes("f", fileName: "f", sampleBytes(count))],
        options: UploadOptions(bytesPerSecond: rate))
      #expect(stage.uploads.state.withLock { $0.appends.allSatisfy { $0.count <= rate } })
      let items = times.withLock { $0 }
      for (index, first) in items.enumerated() {
        for later in items[(index + 1)...] {
          let allowed = Double(rate) * (Double(later.at - first.at) / 1e9 + 0.2)
          #expect(Double(later.count - first.count) <= allowed)
        }
      }
      let seconds = Double(simulation.now.nanoseconds) / 1e9
      #expect(6.8...9 ~= seconds)
    }
  }
}
