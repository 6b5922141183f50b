// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkUploadMessages
import Testing

@testable import LongLinkUploadsServer

/// Clients that keep an append for themselves by sending slowly.
@Suite struct PaceTests {
  private static let second: Int64 = 1_000_000_000

  /// Whether an append is too slow after each of so many equal items.
  private static func judge(
    _ pace: inout AppendPace, _ items: Int, of size: Int, after wait: Int64
  ) -> [Bool] {
    (0..<items).map { _ in pace.isTooSlow(size, after: wait) }
  }

  @Test func `each half minute of waiting has its bytes, and the first one is free`() {
    var pace = AppendPace(bytesPerSecond: 100)
    // Half a minute in which little comes, one with just enough, and one with a byte less.
    let verdicts =
      Self.judge(&pace, 30, of: 1, after: Self.second)
      + Self.judge(&pace, 59, of: 100, after: Self.second)
      + Self.judge(&pace, 1, of: 99, after: Self.second)
    #expect(verdicts == [Bool](repeating: false, count: 89) + [true])
  }

  @Test func `time in which nobody waits is no client's fault`() {
    // They were here when the server came back from its disk.
    var pace = AppendPace(bytesPerSecond: 1_000)
    let verdicts = Self.judge(&pace, 10_000, of: 1, after: 0)
    #expect(!verdicts.contains(true))
    var free = AppendPace(bytesPerSecond: 0)
    let others = Self.judge(&free, 100, of: 0, after: 60 * Self.second)
    #expect(!others.contains(true))
  }

  /// Sends items for ten minutes, one after each pause; returns the error and when it came.
  private func send(
    _ item: [UInt8], each pause: Duration, of client: LongLinkClient, to id: String,
    _ stage: RouteStage
  ) async throws -> (error: LongLinkError?, seconds: Int64) {
    let start = stage.simulation.now
    do {
      _ = try await client.sendItems(
        UploadMethods.append, AppendRequest(id: id, generation: 1, offset: 0)
      ) { writer in
        while stage.simulation.now - start < 600 * Self.second {
          try await writer.write(item)
          try await stage.simulation.sleep(for: pause)
        }
      }
      return (nil, 600)
    } catch let error as LongLinkError {
      return (error, (stage.simulation.now - start) / Self.second)
    }
  }

  @Test(arguments: [[1], []] as [[UInt8]])
  func `an append of a byte now and then ends with 408, and its bytes stay`(
    item: [UInt8]
  ) async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let (error, seconds) = try await send(item, each: .seconds(7), of: client, to: id, stage)
      #expect(error?.response == .deadlinePassed && error?.delivery == .answered)
      // The first half minute is free, and the second one is judged.
      #expect((60...90).contains(seconds))
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset >= UInt64(item.count * 9))
      let counters = stage.receiver.counters
      #expect(counters.tooSlow == 1 && counters.appendsCut == 1)
      #expect(counters.appendsRunning == 0)
    }
  }

  @Test func `an append of enough bytes lasts as long as it likes`() async throws {
    try await RouteStage.run { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let item = [UInt8](repeating: 7, count: 1_100)
      let (error, _) = try await send(item, each: .seconds(1), of: client, to: id, stage)
      #expect(error == nil)
      let status = try await client.request(UploadMethods.status, StatusRequest(id: id))
      #expect(status.offset == 660_000)
    }
  }

  @Test func `the bound can be taken away`() async throws {
    try await RouteStage.run({ $0.minAppendRate = 0 }) { stage in
      let client = try stage.client()
      let id = try await stage.create(of: client)
      let (error, _) = try await send([1], each: .seconds(50), of: client, to: id, stage)
      #expect(error == nil)
    }
  }
}
