// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import Testing

/// What becomes of pushes that their consumer does not take in time.
@Suite struct PushBufferTests {
  private func push(_ number: UInt8, size: Int = 1) -> Push {
    Push(type: 7, body: [UInt8](repeating: number, count: size))
  }

  private func numbers(_ sequence: BufferedSequence<Push, Never>) async -> [UInt8] {
    var numbers: [UInt8] = []
    for await push in sequence { numbers.append(push.body[0]) }
    return numbers
  }

  @Test func `a sequence that may be closed hands on what it holds, and then throws once`()
    async throws
  {
    let hub = PushHub()
    let sequence = hub.subscribe(7, .close(3))
    let other = hub.subscribe(nil, .dropOldest(10))
    for number: UInt8 in 1...6 { hub.publish(push(number)) }
    #expect(sequence.buffered == 3 && sequence.dropped == 1)
    var numbers: [UInt8] = []
    let error = await #expect(throws: LongLinkError.self) {
      for try await push in sequence { numbers.append(push.body[0]) }
    }
    #expect(numbers == [1, 2, 3])
    #expect(error?.code == .overloaded)
    #expect(error?.detail.contains("3 pushes (3 bytes)") == true)
    var iterator = sequence.makeAsyncIterator()
    #expect(try await iterator.next() == nil)
    #expect(hub.counts.closed == 1 && hub.counts.dropped == 1)
    #expect(other.buffered == 6)
  }

  @Test func `what is dropped is counted for the sequence and for all`() async {
    let hub = PushHub()
    let oldest = hub.subscribe(7, .dropOldest(3))
    let newest = hub.subscribe(7, .dropNewest(4))
    for number: UInt8 in 1...10 { hub.publish(push(number)) }
    #expect(oldest.dropped == 7 && newest.dropped == 6)
    #expect(hub.counts.dropped == 13)
    hub.close()
    #expect(await numbers(oldest) == [8, 9, 10])
    #expect(await numbers(newest) == [1, 2, 3, 4])
  }

  @Test func `the bytes of a buffer are bounded too`() async throws {
    let hub = PushHub()
    let oldest = hub.subscribe(7, .dropOldest(100, bytes: 1_000))
    let newest = hub.subscribe(7, .dropNewest(100, bytes: 1_000))
    let closed = hub.subscribe(7, .close(100, bytes: 1_000))
    for number: UInt8 in 1...6 { hub.publish(push(number, size: 300)) }
    #expect(oldest.buffered == 3 && oldest.dropped == 3)
    #expect(newest.buffered == 3 && newest.dropped == 3)
    #expect(closed.buffered == 3 && closed.dropped == 1)
    // One is always held, however large.
    hub.publish(push(7, size: 5_000))
    #expect(oldest.buffered == 1 && oldest.dropped == 6)
    hub.close()
    #expect(await numbers(oldest) == [7])
  }

  @Test func `a consumer that waits gets each push as it comes`() async throws {
    try await Stage.simulate { stage, simulation in
      let hub = PushHub()
      let sequence = hub.subscribe(7, .close(1))
      let taken = Tally<UInt8>()
      let consumer = stage.spawn {
        for try await push in sequence { taken.add(push.body[0]) }
      }
      for number: UInt8 in 1...50 {
        hub.publish(push(number))
        await taken.reached(Int(number))
        try await simulation.sleep(for: .milliseconds(1))
      }
      hub.close()
      try await consumer.value
      #expect(taken.elements == Array(1...50))
      #expect(sequence.dropped == 0)
    }
  }

  @Test func `cancelling the consumer ends its wait, and another goes on`() async throws {
    try await Stage.simulate { stage, simulation in
      let hub = PushHub()
      let sequence = hub.subscribe(7, .dropOldest(10))
      let consumer = stage.spawn { await numbers(sequence) }
      try await simulation.sleep(for: .milliseconds(1))
      hub.publish(push(1))
      try await simulation.sleep(for: .milliseconds(1))
      consumer.cancel()
      #expect(try await consumer.value == [1])
      hub.publish(push(2))
      hub.close()
      #expect(await numbers(sequence) == [2])
    }
  }

  @Test func `a cancelled task takes nothing`() async throws {
    try await Stage.simulate { stage, _ in
      let hub = PushHub()
      let sequence = hub.subscribe(7, .dropOldest(10))
      hub.publish(push(1))
      let consumer = stage.spawn {
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
        return await numbers(sequence)
      }
      let taken = try await consumer.value
      #expect(taken == [])
      #expect(sequence.buffered == 1)
    }
  }

  @Test func `with the last copy the subscription ends`() {
    let hub = PushHub()
    do {
      let sequence = hub.subscribe(7, .dropOldest(10))
      let iterator = sequence.makeAsyncIterator()
      hub.publish(push(1))
      #expect(hub.counts.unhandled == 0)
      _ = (sequence, iterator)
    }
    hub.publish(push(2))
    #expect(hub.counts.unhandled == 1)
  }

  @Test func `a hub that has closed gives sequences that have ended`() async throws {
    let hub = PushHub()
    hub.close()
    #expect(await numbers(hub.subscribe(nil, .dropOldest(1))) == [])
    var iterator = hub.subscribe(nil, .close(1)).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
  }

  @Test func `a client tells of a consumer that fell behind`() async throws {
    try await Stage.pair { stage, server, client in
      let sequence = client.pushes(of: 7, buffer: .close(2))
      try await client.connect()
      let peer = await server.peers()[0]
      for number: UInt8 in 1...3 { try await peer.push(7, [number]) }
      try await stage.until { await client.counters().connections.pushesReceived == 3 }
      let counters = await client.counters()
      #expect(counters.pushesDropped == 1 && counters.pushSequencesClosed == 1)
      let error = try await failure { for try await _ in sequence {} }
      #expect(error.code == .overloaded)
    }
  }
}
