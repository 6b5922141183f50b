// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Many calls as one.
@Suite struct GroupTests {
  private let work = RawMethod.raw(1)

  /// Answers with the request's body after as many seconds as its first byte says; 99 fails.
  private func answerInTime(_ server: SimulatedServer) {
    server.on(1) { request in
      if request.body[0] == 99 { return .delay(.seconds(2), then: .reply(code: 1_000)) }
      return .delay(.seconds(Int(request.body[0])), then: .reply(request.body))
    }
  }

  private func codes(_ results: [Result<[UInt8], CallError>]) -> [CallErrorCode?] {
    results.map { if case .failure(let error) = $0 { error.code } else { nil } }
  }

  @Test func `results are in the order of the calls, in whatever order these end`() async throws {
    try await Scene.run { scene async throws in
      answerInTime(scene.server)
      let group = scene.api.group([4, 3, 2, 1].map { work([$0]) })
      #expect(try await group.values == [[4], [3], [2], [1]])
      #expect(try await group.values == [[4], [3], [2], [1]])
    }
  }

  @Test(arguments: [1, 3, 100])
  func `no more calls run at once than allowed`(_ most: Int) async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      try await scene.client.connect()
      let group = scene.api.group((0..<9).map { _ in work([1]) }, maxConcurrent: most)
      var largest = 0
      for await _ in group.progress() {
        largest = max(largest, await scene.client.counters().requestsOpen)
      }
      #expect(largest == min(most, 9))
      let start = scene.simulation.now
      _ = await group.results
      #expect(start == scene.simulation.now)
    }
  }

  @Test func `a serial group makes one call after the other`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      try await scene.client.connect()
      let start = scene.simulation.now
      let group = scene.api.group([1, 2, 3].map { work([$0]) }, maxConcurrent: 1)
      _ = try await group.values
      let time = start.duration(to: scene.simulation.now)
      #expect(time >= .seconds(6) && time < .milliseconds(6_100))
      #expect(scene.server.requests(of: 1).map(\.body) == [[1], [2], [3]])
    }
  }

  @Test func `progress reports each end once, and ends with the group`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let group = scene.api.group([3, 1, 99].map { work([$0]) })
      var seen: [GroupProgress] = []
      for await progress in group.progress() { seen.append(progress) }
      #expect(seen.map(\.finished) == [0, 1, 2, 3])
      #expect(seen.map(\.failed) == [0, 0, 1, 1])
      #expect(seen.map(\.last) == [nil, 1, 2, 0])
      #expect(seen.allSatisfy { $0.total == 3 })
      var again: [Int] = []
      for await progress in group.progress() { again.append(progress.finished) }
      #expect(again == [3])
    }
  }

  @Test func `by default a failure does not affect the other calls`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let results = await scene.api.group([1, 99, 3, 4, 1].map { work([$0]) }).results
      #expect(codes(results) == [nil, CallErrorCode(rawValue: 1_000), nil, nil, nil])
      let error = try await failure {
        try await scene.api.group([1, 99, 3].map { work([$0]) }).values
      }
      #expect(error.code == CallErrorCode(rawValue: 1_000))
    }
  }

  @Test func `the first failure stops the group if the caller wants that`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let group = scene.api.group(
        [1, 99, 30, 30, 1].map { work([$0]) }, maxConcurrent: 3, mostFailures: 0)
      #expect(
        codes(await group.results) == [
          nil, CallErrorCode(rawValue: 1_000), .cancelled, .cancelled, .cancelled,
        ])
      // The first made room for the fourth; the fifth was never begun.
      #expect(scene.server.requests(of: 1).count == 4)
      let error = try await failure { try await group.values }
      #expect(error.code == CallErrorCode(rawValue: 1_000))
      #expect(await scene.client.counters().requestsOpen == 0)
    }
  }

  @Test func `the tolerated number of failures does not stop the group`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let results = await scene.api.group(
        [99, 1, 99, 1].map { work([$0]) }, maxConcurrent: 1, mostFailures: 1
      ).results
      let failed = CallErrorCode(rawValue: 1_000)
      #expect(codes(results) == [failed, nil, failed, .cancelled])
    }
  }

  @Test func `one cancel ends all`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let group = scene.api.group((0..<10).map { _ in work([30]) })
      try await scene.server.waitForRequest(of: 1, count: 4)
      group.cancel()
      #expect(codes(await group.results) == Array(repeating: .cancelled, count: 10))
      #expect(await scene.client.counters().requestsOpen == 0)
      #expect(scene.server.requests(of: 1).count == 4)
      group.cancel()
    }
  }

  @Test func `cancelling the waiting task cancels the group`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let group = scene.api.group((0..<10).map { _ in work([30]) })
      let waiter = scene.spawn { await group.results }
      try await scene.sleep(.seconds(1))
      waiter.cancel()
      #expect(codes(try await waiter.value) == Array(repeating: .cancelled, count: 10))
    }
  }

  @Test func `an empty group is done at once`() async throws {
    try await Scene.run { scene async throws in
      let group = scene.api.group([Call<[UInt8]>]())
      #expect(try await group.values == [])
      var seen: [Int] = []
      for await progress in group.progress() { seen.append(progress.total) }
      #expect(seen == [0])
    }
  }

  @Test func `cached answers and calls of several kinds go together`() async throws {
    let kept = RawMethod.raw(1, CallPolicy(cache: CachePolicy()))
    let number = kept([1]).map { (bytes) throws(BodyError) in Int(bytes[0]) }
    try await Scene.run { scene in
      answerInTime(scene.server)
      _ = try await scene.api.value(of: number)
      let other = work([0]).map { (bytes) throws(BodyError) in bytes.count * 100 }
      let group = scene.api.group([number, other, number, number], maxConcurrent: 1)
      #expect(try await group.values == [1, 100, 1, 1])
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }

  @Test func `a closed client ends the group`() async throws {
    try await Scene.run { scene in
      answerInTime(scene.server)
      let group = scene.api.group((0..<10).map { _ in work([30]) })
      try await scene.server.waitForRequest(of: 1, count: 4)
      await scene.client.close()
      #expect(codes(await group.results) == Array(repeating: .closed, count: 10))
    }
  }
}
