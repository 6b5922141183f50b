// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Requests that are sent again by themselves.
@Suite struct RetryTests {
  /// A scripted server, and a client of it that reconnects soon.
  private func pair(
    _ stage: Stage,
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> (server: SimulatedServer, client: LongLinkClient) {
    let server = try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
    let client = try stage.client(to: [server.endpoint]) {
      $0.reconnect.afterClose = .milliseconds(5)
      $0.reconnect.cap = .seconds(1)
      $0.timeouts.request = .seconds(60)
      configure(&$0)
    }
    return (server, client)
  }

  /// Refuses and asks to be spared for a time.
  private func refuse(_ code: ResponseCode, retryAfter: Duration) -> ServerAction {
    .refuse(code, metadata: WireMetadata(retryAfter: retryAfter))
  }

  @Test func `a request that an overloaded server refused waits for as long as the server asks`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      server.on(1, [refuse(.overloaded, retryAfter: .seconds(2)), .reply([7])])
      try await client.connect()
      let task = client.submit(
        1, [1], options: RequestOptions(priority: 3, idempotencyKey: [8, 9]))
      try await simulation.sleep(for: .seconds(1))
      #expect(await task.state == .created)
      let waiting = await client.counters()
      #expect(waiting.requestsWaiting == 1 && waiting.bytesWaiting == 1)
      // Others need not wait for it.
      server.on(2, .reply([2]))
      #expect(try await client.request(2, [1]) == [2])
      #expect(try await task.value == [7])
      let sendings = server.requests(of: 1)
      #expect(sendings.count == 2)
      let pause = sendings[0].time.duration(to: sendings[1].time)
      #expect(pause >= .seconds(2) && pause < .milliseconds(2_110), "\(pause)")
      // Nothing that is still said to the first can be taken for an answer to the second.
      #expect(sendings[0].serial != sendings[1].serial)
      #expect(sendings.map(\.metadata?.idempotencyKey) == [[8, 9], [8, 9]])
      #expect(sendings.map(\.metadata?.priority) == [3, 3])
      let remaining = sendings.compactMap(\.metadata?.remaining)
      #expect(remaining[0] > .seconds(59) && remaining[1] <= remaining[0] - .seconds(2))
      let counters = await client.counters()
      #expect(counters.requests.retriedRefused == 1 && counters.requests.retried == 1)
      #expect(counters.requestsWaiting == 0 && counters.bytesWaiting == 0)
      await server.stop()
    }
  }

  @Test func `without a hint the delays grow, and after five retries the request fails`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      server.on(1, .refuse(.overloaded, "busy"))
      let error = try await failure { try await client.request(1, [1]) }
      #expect(error.code == .rejected && error.response == .overloaded)
      #expect(error.delivery == .refused)
      #expect(error.detail == "busy; not retried: retry.maxRetries (5) is reached")
      let times = server.requests(of: 1).map(\.time)
      #expect(times.count == 6)
      for (index, pair) in zip(times, times.dropFirst()).enumerated() {
        let pause = pair.0.duration(to: pair.1)
        let whole = Duration.milliseconds(100 << index)
        #expect(pause >= whole / 2 && pause <= whole + .milliseconds(5), "\(index): \(pause)")
      }
      #expect(await client.counters().requests.retriedRefused == 5)
      #expect(await client.counters().requests.rejected == 1)
      await server.stop()
    }
  }

  @Test func `if the deadline does not allow another attempt, the request fails at once`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      server.on(1, refuse(.overloaded, retryAfter: .seconds(20)))
      try await client.connect()
      let now = simulation.now
      let error = try await failure {
        try await client.request(1, [1], options: RequestOptions(timeout: .seconds(20)))
      }
      #expect(error.code == .rejected && error.delivery == .refused)
      #expect(error.retryAfter == .seconds(20))
      #expect(now.duration(to: simulation.now) < .milliseconds(100))
      await server.stop()
    }
  }

  @Test func `requests that opt out are not retried, and none are after other refusals`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      for code: ResponseCode in [.overloaded, .draining] {
        server.on(1, [.refuse(code), .reply([1])])
        let error = try await failure {
          try await client.request(1, [1], options: RequestOptions(retry: .never))
        }
        #expect(error.delivery == .refused && error.response == code)
      }
      for code: ResponseCode in [.unknownType, .tooLarge, .deadlinePassed, .forbidden] {
        server.on(1, [.refuse(code), .reply([1])])
        let error = try await failure {
          try await client.request(1, [1], options: RequestOptions(retry: .idempotent))
        }
        #expect(error.delivery == .refused && error.response == code)
      }
      // An answer is not a refusal, whatever its code.
      server.on(1, [.reply(code: .overloaded), .reply([1])])
      let error = try await failure { try await client.request(1, [1]) }
      #expect(error.delivery == .answered)
      #expect(await client.counters().requests.retried == 0)
      await server.stop()
    }
  }

  @Test func `a second response to a refused attempt completes nothing`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage) { $0.retry.baseDelay = .milliseconds(10) }
      server.on(
        1,
        [
          .sequence([.refuse(.overloaded), .delay(.milliseconds(100), then: .reply([66]))]),
          .delay(.seconds(1), then: .reply([7])),
        ])
      #expect(try await client.request(1, [1]) == [7])
      #expect(await client.counters().requests.lateReplies == 1)
      #expect(server.connectionsAccepted == 1)
      await server.stop()
    }
  }

  @Test func `a request that waits for a retry can be cancelled and ends with the client`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      server.on(1, refuse(.overloaded, retryAfter: .seconds(20)))
      try await client.connect()
      let tasks = (0..<3).map { _ in client.submit(1, [1]) }
      try await stage.until { await client.counters().requestsWaiting == 3 }
      tasks[0].cancel()
      let first = try await failure { try await tasks[0].value }
      #expect(first.code == .cancelled && first.delivery == .refused)
      #expect(await client.counters().requestsWaiting == 2)
      // Cancelling finds it under its new serial too, once it is under way.
      server.on(1, .never)
      try await stage.until { server.requests(of: 1).count == 5 }
      #expect(await tasks[1].state == .waiting)
      tasks[1].cancel()
      let second = try await failure { try await tasks[1].value }
      #expect(second.code == .cancelled && second.delivery == .sent)
      server.on(1, refuse(.overloaded, retryAfter: .seconds(20)))
      let last = client.submit(1, [1])
      try await stage.until { await client.counters().requestsWaiting == 1 }
      await client.close()
      let closed = try await failure { try await last.value }
      #expect(closed.code == .closed && closed.delivery == .refused)
      #expect(try await failure { try await tasks[2].value }.delivery == .sent)
      await server.stop()
    }
  }

  @Test func `the error of a deadline that passes shows the refusal before`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      server.on(1, refuse(.overloaded, retryAfter: .seconds(1)))
      try await client.connect()
      let task = client.submit(1, [1], options: RequestOptions(timeout: .seconds(5)))
      try await stage.until { await client.counters().requestsWaiting == 1 }
      simulation.network.connects = .refused
      simulation.network.loseAllLinks()
      let error = try await failure { try await task.value }
      #expect(error.code == .deadlineExceeded && error.delivery == .refused)
      #expect(server.requests(of: 1).count == 1)
      await server.stop()
    }
  }

  @Test func `a request refused by a server that goes away is retried at the next one`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      // The goaway counts the request; the refusal comes behind it.
      server.on(1, [.sequence([.goAway(), .refuse(.draining)]), .reply([7])])
      // It may have said nothing of going away, and is tried again after a while.
      server.on(2, [.refuse(.draining), .reply([8])])
      #expect(try await client.request(1, [1]) == [7])
      #expect(server.requests(of: 1).map(\.connection) == [1, 2])
      #expect(try await client.request(2, [1]) == [8])
      #expect(server.requests(of: 2).map(\.connection) == [2, 2])
      #expect(await client.counters().requests.retriedRefused == 2)
      await server.stop()
    }
  }

  @Test func `idempotent requests are retried although they may have run`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      for ending: ServerAction in [.reset, .close] {
        server.on(1, [ending, .reply([7])])
        let body = try await client.request(
          1, [1], options: RequestOptions(idempotencyKey: [5], retry: .idempotent))
        #expect(body == [7])
        server.on(1, [ending, .reply([7])])
        let error = try await failure { try await client.request(1, [1]) }
        #expect(error.code == .connectionLost && error.delivery == .sent)
        let unready = RequestOptions(waitsForConnection: false, retry: .idempotent)
        server.on(1, [ending, .reply([7])])
        try await client.connect()
        let other = try await failure { try await client.request(1, [1], options: unready) }
        #expect(other.delivery == .sent)
      }
      let counters = await client.counters().requests
      #expect(counters.retriedIdempotent == 2 && counters.retried == 2)
      #expect(counters.lost == 4 && counters.beyondBudget == 0)
      #expect(server.requests(of: 1).filter { $0.metadata?.idempotencyKey == [5] }.count == 4)
      await server.stop()
    }
  }

  @Test func `the last refusal does not hide that an earlier attempt may have run`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      let idempotent = RequestOptions(timeout: .seconds(10), retry: .idempotent)
      server.on(1, [.reset, .refuse(.unknownType, "no such type")])
      let refused = try await failure { try await client.request(1, [1], options: idempotent) }
      #expect(refused.code == .rejected && refused.response == .unknownType)
      #expect(refused.delivery == .sent && !refused.delivery.isSafeToRetry)
      #expect(refused.detail == "no such type; an earlier sending may have run")
      // Nor does a cancel or a deadline before it left again.
      server.on(1, .reset)
      simulation.network.connects = .refused
      let task = client.submit(1, [1], options: idempotent)
      try await stage.until { await client.counters().requestsWaiting == 1 }
      task.cancel()
      #expect(try await failure { try await task.value }.delivery == .sent)
      simulation.network.connects = .normal
      // What a handler answers is the answer, however often the request was sent.
      server.on(1, [.reset, .reply(code: 1_000, body: [3])])
      let answered = try await failure { try await client.request(1, [1], options: idempotent) }
      #expect(answered.delivery == .answered && answered.body == [3])
      await server.stop()
    }
  }

  @Test func `no more requests are retried than the budget allows`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage) {
        ($0.retry.budget, $0.retry.budgetPerSuccess) = (4, 1)
      }
      try await client.connect()
      server.on(1, .never)
      let idempotent = RequestOptions(retry: .idempotent)
      let tasks = (0..<5).map { client.submit(1, [UInt8($0)], options: idempotent) }
      try await stage.until { server.requests(of: 1).count == 5 }
      server.on(1) { .reply($0.body) }
      simulation.network.loseAllLinks()
      // Half of the tokens are spent, for those that were asked first.
      #expect(try await tasks[0].value == [0])
      #expect(try await tasks[1].value == [1])
      for task in tasks[2...] {
        let error = try await failure { try await task.value }
        #expect(error.delivery == .sent)
        #expect(error.detail.hasSuffix("; not retried: the retry budget is spent (retry.budget)"))
      }
      let counters = await client.counters().requests
      #expect(counters.retriedIdempotent == 2 && counters.beyondBudget == 3)
      // Successes pay for others.
      for _ in 0..<4 { _ = try await client.request(1, [9]) }
      server.on(1, [.reset, .reply([7])])
      #expect(try await client.request(1, [1], options: idempotent) == [7])
      await server.stop()
    }
  }

  @Test func `by default, the budget carries 128 requests of one connection, and no more`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      try await client.connect()
      server.on(1, .never)
      let idempotent = RequestOptions(retry: .idempotent)
      var tasks = (0..<128).map { client.submit(1, [UInt8($0)], options: idempotent) }
      try await stage.until { server.requests(of: 1).count == 128 }
      server.on(1) { .reply($0.body) }
      simulation.network.loseAllLinks()
      for (index, task) in tasks.enumerated() { #expect(try await task.value == [UInt8(index)]) }
      #expect(await client.counters().requests.retriedIdempotent == 128)
      // They have paid for twelve more.
      server.on(1, .never)
      tasks = (0..<300).map { _ in client.submit(1, [], options: idempotent) }
      for _ in 0..<4 {
        try await simulation.sleep(for: .seconds(3))
        simulation.network.loseAllLinks()
      }
      for task in tasks { #expect(try await failure { try await task.value }.delivery == .sent) }
      let counters = await client.counters().requests
      #expect(counters.retriedIdempotent == 140 && counters.beyondBudget == 300)
      #expect(server.requests(of: 1).count == 568)
      await server.stop()
    }
  }

  @Test func `a request that each server loses is not retried for ever`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage) {
        $0.retry.budget = 1_000
        $0.retry.maxRetries = 3
      }
      server.on(1, .reset)
      let error = try await failure {
        try await client.request(1, [1], options: RequestOptions(retry: .idempotent))
      }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(error.detail.contains("; not retried: retry.maxRetries (3) is reached"), "\(error)")
      #expect(server.requests(of: 1).count == 4)
      #expect(await client.counters().requests.retriedIdempotent == 3)
      await server.stop()
    }
  }

  @Test func `a request that each server refuses as it goes away is not retried for ever`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage) { $0.retry.maxRetries = 2 }
      let leaving = ServerAction.frame { _ in .goAway(code: .draining, requestsAccepted: 0) }
      server.on(1, .sequence([leaving, .close]))
      let error = try await failure { try await client.request(1, [1]) }
      #expect(error.delivery == .refused)
      #expect(error.detail.hasSuffix("not retried: retry.maxRetries (2) is reached"), "\(error)")
      #expect(server.requests(of: 1).count == 3)
      await server.stop()
    }
  }

  @Test func `requests are not retried after a goaway that blames this side`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await pair(stage)
      let idempotent = RequestOptions(retry: .idempotent)
      server.on(
        1, [.sequence([.goAway(code: .malformed, reason: "nonsense"), .close]), .reply([1])])
      let error = try await failure { try await client.request(1, [1], options: idempotent) }
      #expect(error.delivery == .sent)
      // Damage on the way is nobody's fault.
      server.on(2, [.corruptChecksum([1]), .reply([2])])
      #expect(try await client.request(2, [1], options: idempotent) == [2])
      await server.stop()
    }
  }

  @Test func `a server's own requests to an overloaded client are retried`() async throws {
    try await Stage.simulate { stage, simulation in
      let peers = Tally<Peer>()
      let server = try await stage.serve { $0.onConnect { peers.add($0) } }
      let peer = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
      try await peer.sayHello()
      await peers.reached(1)
      let asking = stage.spawn { try await peers.elements[0].request(20, [3]) }
      let first = try await peer.waitForFrame(.request)
      peer.send(.response(to: first.serial, code: .overloaded, isRefused: true))
      let second = try await peer.waitForFrame(.request, count: 2)
      #expect(second.serial > first.serial && second.body.suffix(1) == [3])
      peer.send(.response(to: second.serial, [4]))
      #expect(try await asking.value == [4])
      peer.close()
    }
  }
}
