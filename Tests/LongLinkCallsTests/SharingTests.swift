// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Identical calls that are under way together.
@Suite struct SharingTests {
  private let read = RawMethod.raw(1, .reading)

  @Test func `identical calls share one exchange, and each gets the answer`() async throws {
    try await Scene.run { scene async throws in
      scene.server.on(1, .reply([9]), after: .seconds(1))
      let calls = (0..<5).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      for call in calls { #expect(try await call.value == [9]) }
      #expect(scene.server.requests(of: 1).count == 1)
      let counters = await scene.api.counters()
      #expect(counters.calls == 5 && counters.shared == 4 && counters.exchanges == 1)
    }
  }

  @Test func `other bodies, entries and methods do not share`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .reply([9]), after: .seconds(1))
      scene.server.on(2, .reply([8]), after: .seconds(1))
      let french = CallPolicy(RequestOptions(metadata: ["language": "fr"]))
      let calls = [
        scene.spawn { try await scene.api.call(read, [7]) },
        scene.spawn { try await scene.api.call(read, [6]) },
        scene.spawn { try await scene.api.call(read, [7], policy: french) },
        scene.spawn { try await scene.api.call(.raw(2, .reading), [7]) },
        scene.spawn { try await scene.api.call(.raw(1), [7]) },
      ]
      for call in calls { _ = try await call.value }
      #expect(await scene.api.counters().shared == 0)
      #expect(scene.server.requests.count == 5)
    }
  }

  @Test func `a key of the caller takes the place of the body`() async throws {
    try await Scene.run { scene async throws in
      scene.server.on(1) { .delay(.seconds(1), then: .reply($0.body)) }
      let first = scene.spawn { try await scene.api.value(of: read([1]).keyed(by: [0])) }
      let second = scene.spawn { try await scene.api.value(of: read([2]).keyed(by: [0])) }
      #expect(try await first.value == [1])
      #expect(try await second.value == [1])
    }
  }

  @Test func `the exchange is cancelled only with its last caller`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .never)
      let calls = (0..<3).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      try await scene.server.waitForRequest(of: 1)
      for call in calls.prefix(2) {
        call.cancel()
        let error = try await failure { try await call.value }
        // Its exchange goes on, and may run.
        #expect(error.code == .cancelled && error.delivery == .sent)
      }
      try await scene.sleep(.seconds(1))
      #expect(scene.server.cancels.isEmpty)
      #expect(await scene.client.counters().requestsOpen == 1)
      calls[2].cancel()
      let error = try await failure { try await calls[2].value }
      #expect(error.code == .cancelled && error.delivery == .sent)
      #expect(await scene.client.counters().requestsOpen == 0)
      try await scene.until { scene.server.cancels.count == 1 }
    }
  }

  @Test func `a call during the last caller's cancel begins a new exchange`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, [.never, .reply([2])])
      let first = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.server.waitForRequest(of: 1)
      first.cancel()
      // In the same turn of the loop, before anything was sent.
      #expect(try await scene.api.call(read, [7]) == [2])
      #expect(try await failure { try await first.value }.code == .cancelled)
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }

  @Test(arguments: 0..<200)
  func `a cancel that crosses the response ends each call once`(_ step: Int) async throws {
    try await Scene.run(seed: UInt64(step)) { scene in
      scene.server.on(1, .reply([9]), after: .milliseconds(10))
      try await scene.client.connect()
      let calls = (0..<3).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      // The answer comes in the midst of these.
      try await scene.sleep(.microseconds(Int64(step) * 100))
      for call in calls { call.cancel() }
      let late = scene.spawn { try await scene.api.call(read, [7]) }
      for call in calls {
        switch await call.result {
        case .success(let body): #expect(body == [9])
        case .failure(let error): #expect((error as? CallError)?.code == .cancelled)
        }
      }
      #expect(try await late.value == [9])
    }
  }

  @Test func `a caller whose deadline passes first does not affect the others`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .reply([9]), after: .seconds(10))
      let patient = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.server.waitForRequest(of: 1)
      let start = scene.simulation.now
      let error = try await failure {
        try await scene.api.call(
          read, [7], policy: CallPolicy(RequestOptions(timeout: .seconds(2))))
      }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      #expect(start.duration(to: scene.simulation.now) < .milliseconds(2_010))
      #expect(try await patient.value == [9])
      #expect(scene.server.requests(of: 1).count == 1)
    }
  }

  @Test func `a caller with a later deadline gets a second exchange`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, [.never, .delay(.seconds(1), then: .reply([2]))])
      let first = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.sleep(.seconds(10))
      let second = scene.spawn { try await scene.api.call(read, [7]) }
      #expect(try await failure { try await first.value }.code == .deadlineExceeded)
      #expect(try await second.value == [2])
      let counters = await scene.api.counters()
      #expect(counters.exchanges == 2 && counters.shared == 1)
    }
  }

  @Test func `the deadline of a later caller is its own, too`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .never)
      let start = scene.simulation.now
      let ends = Tally<Duration>()
      for second in 0..<3 {
        scene.spawn {
          try await scene.sleep(.seconds(second))
          let error = try await failure { try await scene.api.call(read, [7]) }
          #expect(error.code == .deadlineExceeded && error.delivery == .sent)
          ends.add(start.duration(to: scene.simulation.now))
        }
      }
      try await scene.sleep(.seconds(18))
      #expect(ends.elements.count == 3)
      for (second, end) in ends.elements.enumerated() {
        #expect(end >= .seconds(15 + second) && end < .milliseconds(15_010 + second * 1_000))
      }
    }
  }

  @Test func `calls with different options do not share`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .reply([9]), after: .seconds(1))
      let first = scene.spawn { try await scene.api.call(read, [7]) }
      let hasty = CallPolicy(RequestOptions(waitsForConnection: false))
      let second = scene.spawn { try await scene.api.call(read, [7], policy: hasty) }
      _ = try await (first.value, second.value)
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }

  @Test func `a failure fails all calls that share the exchange`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .reply(code: 1_001, body: [4]), after: .seconds(1))
      let calls = (0..<3).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      for call in calls {
        let error = try await failure { try await call.value }
        #expect(error.code == CallErrorCode(rawValue: 1_001) && error.link.body == [4])
      }
      #expect(scene.server.requests(of: 1).count == 1)
    }
  }

  @Test func `a closed client ends every call`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .never)
      let calls = (0..<3).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      try await scene.server.waitForRequest(of: 1)
      await scene.client.close()
      for call in calls { #expect(try await failure { try await call.value }.code == .closed) }
      #expect(try await failure { try await scene.api.call(read, [7]) }.code == .closed)
    }
  }

  @Test func `a cancelled task makes no request`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .never)
      let call = scene.spawn {
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
        return try await scene.api.call(read, [7])
      }
      let error = try await failure { try await call.value }
      #expect(error.code == .cancelled && error.delivery == .notSent)
      try await scene.sleep(.seconds(1))
      #expect(scene.server.requests.isEmpty)
    }
  }
}
