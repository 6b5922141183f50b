// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import Testing

/// What happens when more is to be sent than the other side takes.
@Suite struct PressureTests {
  private static let marks = WaterMarks(high: 100_000, low: 40_000)
  /// What one message of the tests takes at most, beside its body.
  private static let overhead = 64

  /// A connection whose client may have 100,000 bytes waiting.
  private func pressed(
    _ stage: Stage, setUp: @escaping (LongLinkServer) -> Void = { $0.routeBasics() }
  ) async throws -> (client: LongLinkClient, server: LongLinkServer) {
    let server = try await stage.serve(
      setUp: setUp, configure: { $0.limits.waterMarks = Self.marks })
    let client = try stage.client(of: server) { $0.limits.waterMarks = Self.marks }
    try await client.connect()
    return (client, server)
  }

  /// Pushes until no more has room on a link that takes nothing.
  private func fill(_ stage: Stage, _ client: LongLinkClient) async throws {
    while await client.counters().bytesUnwritten < Self.marks.high {
      try await client.push(7, body(10_000, 0))
      try await stage.clientLoop.sleep(for: .milliseconds(1))
    }
  }

  private func body(_ count: Int = 10_000, _ value: UInt8 = 1) -> [UInt8] {
    [UInt8](repeating: value, count: count)
  }

  @Test func `above the mark requests wait, and go on when the bytes have left`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, server) = try await pressed(stage)
      let link = simulation.network.links[0]
      link.silence(.toServer)
      let handles = (0..<200).map { _ in client.submit(.echo, body()) }
      try await simulation.sleep(for: .seconds(1))
      let counters = await client.counters()
      // The link took 256 KiB; of what waits, one message may lead over the mark.
      #expect((100_000..<110_000 + Self.overhead).contains(counters.bytesUnwritten))
      #expect(counters.connections.highWaterEvents >= 1)
      #expect(counters.connections.requestsSent < 45)
      link.restore(.toServer)
      for handle in handles { #expect(try await handle.value == body()) }
      #expect(await client.counters().bytesUnwritten == 0)
      #expect(await server.counters().connections.requestsReceived == 200)
    }
  }

  @Test func `large bodies wait at a mark of their own, and small requests pass`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.limits.waterMarks = WaterMarks(large: 1_000_000)
        $0.timeouts.request = .seconds(1_000)
      }
      try await client.connect()
      let link = simulation.network.links[0]
      link.setConditions(
        LinkConditions(latency: .milliseconds(5) ... .milliseconds(5), window: 16_384), .toServer)
      let large = (0..<8).map { _ in client.submit(.echo, body(800_000)) }
      try await simulation.sleep(for: .milliseconds(100))
      let counters = await client.counters()
      #expect(counters.requestsWaiting == 6)
      #expect((1_000_000..<2_000_000).contains(counters.bytesUnwritten))
      for number: UInt8 in 0..<5 {
        let before = link.bytesWritten(.toServer)
        #expect(try await client.request(.echo, [number]) == [number])
        #expect(link.bytesWritten(.toServer) - before < 200_000)
      }
      for task in large { #expect(try await task.value == body(800_000)) }
    }
  }

  @Test func `a request that waits for room meets its deadline, unsent`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, server) = try await pressed(stage)
      let link = simulation.network.links[0]
      link.silence(.toServer)
      let options = RequestOptions(timeout: .seconds(5))
      let handles = (0..<60).map { _ in client.submit(.echo, body(), options: options) }
      var unsent = 0
      for handle in handles {
        let error = try await failure { try await handle.value }
        #expect(error.code == .deadlineExceeded)
        if error.delivery == .notSent { unsent += 1 }
      }
      #expect((20...40).contains(unsent))
      link.restore(.toServer)
      #expect(try await client.request(.echo, [1]) == [1])
      let received = await server.counters().connections.requestsReceived
      #expect(received <= 61 - UInt64(unsent))
    }
  }

  @Test(arguments: [true, false])
  func `pushes wait for room and keep their order`(fromClient: Bool) async throws {
    try await Stage.simulate { stage, simulation in
      let received = Tally<UInt8>()
      let (client, server) = try await pressed(stage) { server in
        server.onPush(7) { push, _ in received.add(push.body[0]) }
      }
      client.onPush(7) { received.add($0.body[0]) }
      let peer = await server.peers()[0]
      let link = simulation.network.links[0]
      link.silence(fromClient ? .toServer : .toClient)
      let pushed = Tally<UInt8>()
      let pushing = stage.spawn {
        for number: UInt8 in 0..<100 {
          if fromClient {
            try await client.push(7, body(10_000, number))
          } else {
            try await peer.push(7, body(10_000, number))
          }
          pushed.add(number)
        }
      }
      try await simulation.sleep(for: .seconds(1))
      // 256 KiB have left; ten more fill the mark, and the next one waits.
      #expect((35...38).contains(pushed.count))
      let (bytes, waiting) =
        fromClient
        ? await (client.counters().bytesUnwritten, client.counters().pushesWaiting)
        : await (server.counters().bytesUnwritten, server.counters().pushesWaiting)
      #expect((100_000..<110_000 + Self.overhead).contains(bytes))
      #expect(waiting == 1)
      link.restore(fromClient ? .toServer : .toClient)
      try await pushing.value
      await received.reached(100)
      #expect(received.elements == Array(0..<100))
      let counters = await (client.counters().connections, server.counters().connections)
      let own = fromClient ? counters.0 : counters.1
      #expect(own.pushesWaited >= 1 && own.pushesGivenUp == 0 && own.pushesTurnedAway == 0)
    }
  }

  @Test func `a push that waits is cancelled, is late, or is lost, and says so`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, _) = try await pressed(stage)
      simulation.network.links[0].silence(.toServer)
      try await fill(stage, client)
      let cancelled = stage.spawn { try await failure { try await client.push(7, [1]) } }
      let late = stage.spawn {
        try await failure {
          try await client.push(7, [2], timeout: .seconds(3))
        }
      }
      let lost = stage.spawn {
        try await failure {
          try await client.push(7, [3], timeout: .seconds(3_000))
        }
      }
      try await simulation.sleep(for: .seconds(1))
      #expect(await client.counters().pushesWaiting == 3)
      cancelled.cancel()
      #expect(try await cancelled.value.code == .cancelled)
      let lateError = try await late.value
      #expect(lateError.code == .deadlineExceeded && lateError.delivery == .notSent)
      let lostError = try await lost.value
      #expect(lostError.code == .connectionLost && lostError.delivery == .notSent)
      #expect(lostError.closeReason != nil)
      #expect(await client.counters().connections.pushesGivenUp == 3)
    }
  }

  @Test func `a push that waits ends with the client`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, _) = try await pressed(stage)
      simulation.network.links[0].silence(.toServer)
      try await fill(stage, client)
      let pushing = stage.spawn { try await failure { try await client.push(7, [1]) } }
      try await simulation.sleep(for: .seconds(1))
      await client.close(within: .seconds(2))
      #expect(try await pushing.value.code == .closed)
    }
  }

  @Test func `an urgent push goes first among those that wait`() async throws {
    try await Stage.simulate { stage, simulation in
      let received = Tally<UInt8>()
      let (client, _) = try await pressed(stage) { server in
        server.onPush(7) { push, _ in received.add(push.body[0]) }
      }
      let link = simulation.network.links[0]
      link.silence(.toServer)
      try await fill(stage, client)
      for (number, priority): (UInt8, UInt32) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
        stage.spawn {
          try await client.push(7, [number], priority: priority)
        }
        try await stage.until { await client.counters().pushesWaiting == Int(number) }
      }
      link.restore(.toServer)
      try await stage.until { received.elements.last == 3 }
      #expect(received.elements.filter { $0 > 0 } == [2, 4, 1, 3])
    }
  }

  @Test func `more pushes than may wait are turned away`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.limits.waterMarks = Self.marks
        $0.limits.maxWaiting = 3
      }
      try await client.connect()
      simulation.network.links[0].silence(.toServer)
      try await fill(stage, client)
      for number in 1...3 {
        stage.spawn { try await client.push(7, [1]) }
        try await stage.until { await client.counters().pushesWaiting == number }
      }
      let error = try await failure { try await client.push(7, [1]) }
      #expect(error.code == .overloaded && error.delivery == .notSent)
      #expect(await client.counters().connections.pushesTurnedAway == 1)
    }
  }

  @Test func `the bytes of the pushes that wait are bounded`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.limits.waterMarks = Self.marks
        $0.limits.maxWaitingBytes = 2_500
      }
      try await client.connect()
      let link = simulation.network.links[0]
      link.silence(.toServer)
      try await fill(stage, client)
      let waiting = Tally<Void>()
      for number in 1...2 {
        stage.spawn {
          try await client.push(7, [UInt8](repeating: 1, count: 1_000))
          waiting.add(())
        }
        try await stage.until { await client.counters().pushesWaiting == number }
      }
      let error = try await failure {
        try await client.push(7, [UInt8](repeating: 1, count: 501))
      }
      #expect(error.code == .overloaded && error.delivery == .notSent)
      #expect(
        error.detail == "at most 10000 pushes (2500 bytes) may wait; 2 (2000 bytes) do", "\(error)")
      // What has left makes room for others.
      link.restore(.toServer)
      await waiting.reached(2)
      link.silence(.toServer)
      try await fill(stage, client)
      stage.spawn { try await client.push(7, [UInt8](repeating: 1, count: 2_500)) }
      try await stage.until { await client.counters().pushesWaiting == 1 }
    }
  }

  @Test func `a push that does not wait fails where there is no room`() async throws {
    try await Stage.simulate { stage, simulation in
      let outcomes = Tally<LongLinkError?>()
      let pushNow = { @Sendable (push: () throws(LongLinkError) -> Void) in
        do throws(LongLinkError) {
          try push()
          outcomes.add(nil)
        } catch {
          outcomes.add(error)
        }
      }
      let (client, server) = try await pressed(stage) { server in
        server.route(.echo) { request in
          for _ in 0..<12 {
            pushNow { () throws(LongLinkError) in
              try request.peer.pushNow(7, body())
            }
          }
          return request.body
        }
      }
      client.request(.echo, [1], on: .connectionLoop) { _ in
        for _ in 0..<12 { pushNow { () throws(LongLinkError) in try client.pushNow(7, body()) } }
      }
      await outcomes.reached(24)
      for side in [outcomes.elements.prefix(12), outcomes.elements.suffix(12)] {
        #expect(side.prefix(10).allSatisfy { $0 == nil })
        #expect(side.suffix(2).allSatisfy { $0?.code == .overloaded })
      }
      #expect(outcomes.elements[11]?.detail.contains("100000") == true)
      #expect(await client.counters().connections.pushesTurnedAway == 2)
      #expect(await server.counters().connections.pushesTurnedAway == 2)
    }
  }

  @Test func `a server that stops reading is disconnected, and error and counters name the reason`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      let client = try stage.client(to: [server.endpoint]) {
        $0.heartbeat = Heartbeat(interval: .seconds(4), timeout: .seconds(2))
        $0.limits.waterMarks = Self.marks
      }
      try await client.connect()
      simulation.network.links[0].silence(.toServer)
      // It goes on sending, so that it is not taken for dead.
      let talking = stage.spawn {
        while true {
          server.push(9, [1])
          try await simulation.sleep(for: .milliseconds(500))
        }
      }
      try await fill(stage, client)
      let task = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(100)))
      let error = try await failure { try await client.push(7, [1]) }
      #expect(error.code == .connectionLost && error.closeReason == .stalledPeer)
      #expect(await client.counters().endings["stalledPeer"] == 1)
      task.cancel()
      talking.cancel()
      await client.close()
      await server.stop()
    }
  }

  @Test(arguments: [false, true])
  func `a broadcast does not wait for a slow connection`(closesSlow: Bool) async throws {
    try await Stage.simulate { stage, simulation in
      let (slow, server) = try await pressed(stage)
      let quick = try stage.client(of: server)
      try await quick.connect()
      let peer = await server.peers()[0]
      simulation.network.links[0].silence(.toClient)
      while await server.counters().bytesUnwritten < Self.marks.high {
        try await peer.push(7, body())
        try await simulation.sleep(for: .milliseconds(1))
      }
      let report = try await server.broadcast(8, body(), closingSlow: closesSlow)
      #expect(report.queued == 1)
      #expect(report.skipped == (closesSlow ? 0 : 1))
      #expect(report.dropped == (closesSlow ? 1 : 0))
      try await stage.until { await quick.counters().connections.pushesReceived == 1 }
      let counters = await server.counters()
      #expect(counters.connections.broadcastsSkipped == (closesSlow ? 0 : 1))
      #expect(counters.endings["unreadOutput", default: 0] == (closesSlow ? 1 : 0))
      _ = slow
    }
  }
}
