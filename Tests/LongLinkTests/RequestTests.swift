// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDemoMessages
import LongLinkProtobufC
import LongLinkServer
import LongLinkTesting
import Testing

/// The ways to ask.
@Suite struct RequestTests {
  @Test(arguments: TestEnvironment.allCases)
  func `a request is answered`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, server, client in
      try await client.connect()
      #expect(try await client.request(.echo, Array("hello".utf8)) == Array("hello".utf8))
      #expect(try await client.request(.echo, EmptyBody()) == [])
      let counters = await server.counters()
      #expect(counters.connections.requestsReceived == 2)
      #expect(counters.connections.responsesSent == 2)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the first request opens the connection`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
      #expect(client.state == .idle)
      #expect(try await client.request(.echo, [1]) == [1])
      guard case .connected = client.state else {
        Issue.record("\(client.state)")
        return
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `answers find their requests in any order`(_ environment: TestEnvironment) async throws {
    let held = Tally<Latch>()
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in
        let latch = Latch()
        held.add(latch)
        await latch.wait()
        return request.body
      }
    } _: { _, _, client in
      try await client.connect()
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number: UInt8 in 0..<100 {
          group.addTask { try await client.request(.echo, [number, number]) == [number, number] }
        }
        await held.reached(100)
        for latch in held.elements.reversed() { latch.open() }
        for try await isRight in group { #expect(isRight) }
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `messages are typed on both sides`(_ environment: TestEnvironment) async throws {
    try await Stage.serving(in: environment) { server in
      server.route(RPCMethod<FailRequest, Tick>(10)) { message, _ in
        Tick(number: UInt64(message.code))
      }
      server.route(RPCMethod<SleepRequest, Tick>(11)) { message, request in
        await Task.yield()
        return Tick(number: UInt64(message.milliseconds))
      }
    } _: { _, _, client in
      let first: Tick = try await client.request(
        RPCMethod(10), FailRequest(code: 77, detail: "ä"))
      #expect(first == Tick(number: 77))
      let second: Tick = try await client.request(RPCMethod(11), SleepRequest(milliseconds: 5))
      #expect(second == Tick(number: 5))
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a body that is not the message is answered with 400`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.serving(in: environment) { server in
      server.route(RPCMethod<FailRequest, Tick>(10)) { message, _ in Tick() }
      server.route(RPCMethod<FailRequest, Tick>(11)) { message, _ in
        await Task.yield()
        return Tick()
      }
    } _: { _, _, client in
      for type: MessageType in [10, 11] {
        let error = try await failure { try await client.request(type, [0xFF, 0xFF]) }
        #expect(error.code == .rejected)
        #expect(error.response == .malformed)
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a reply that is not the message fails to decode`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.pair(in: environment) { _, _, client in
      let error = try await failure {
        try await client.request(RPCMethod<[UInt8], Tick>(.echo), [0xFF, 0xFF])
      }
      #expect(error.code == .decodingFailed)
      #expect(error.delivery == .answered)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the options of a request reach the handler`(_ environment: TestEnvironment)
    async throws
  {
    let seen = Tally<InboundRequest>()
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in
        seen.add(request)
        return request.body
      }
    } _: { stage, _, client in
      try await client.connect()
      _ = try await client.request(
        .echo,
        [1],
        options: RequestOptions(
          timeout: .seconds(60),
          priority: 7,
          idempotencyKey: [1, 2],
          metadata: ["a": "b", "c": ""]
        )
      )
      _ = try await client.request(.echo, [2])
      let (first, second) = (seen.elements[0], seen.elements[1])
      #expect(first.priority == 7)
      #expect(first.idempotencyKey == [1, 2])
      #expect(first.metadata == ["a": "b", "c": ""])
      #expect(second.priority == 0 && second.idempotencyKey == [] && second.metadata == [:])
      #expect(first.serial >= 50 && first.serial != second.serial)
      #expect(first.peer.id == second.peer.id)
      let left = try #require(first.deadline).nanoseconds - stage.serverLoop.clock.now.nanoseconds
      #expect(left > 0 && left <= 60_000_000_000)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a completion handler is called where the caller asked`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
      let loop = stage.clientLoop
      let other = stage.serverLoop
      let results = Tally<(name: String, isRight: Bool, result: Result<[UInt8], LongLinkError>)>()
      client.request(.echo, [1], on: .connectionLoop) {
        results.add(("loop", loop.isCurrent, $0))
      }
      client.request(.echo, [2], on: .executor(other)) {
        results.add(("executor", other.isCurrent, $0))
      }
      client.request(.echo, [3], on: CallbackExecutor { work in work() }) {
        results.add(("function", true, $0))
      }
      client.request(9, [4], on: .connectionLoop) {
        results.add(("failure", loop.isCurrent, $0))
      }
      await results.reached(4)
      for (name, isRight, result) in results.elements {
        #expect(isRight, "\(name)")
        if name == "failure" {
          #expect(throws: LongLinkError.self) { try result.get() }
        } else {
          #expect(throws: Never.self) { try result.get() }
        }
      }
    }
  }

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `a completion handler is called on a dispatch queue`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
      let queue = QueueProbe()
      let results = Tally<Bool>()
      client.request(.echo, [1], on: .queue(queue.queue)) { _ in results.add(queue.isCurrent) }
      await results.reached(1)
      #expect(results.elements == [true])
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a handle shows the state of its request`(_ environment: TestEnvironment) async throws {
    let (began, goOn) = (Latch(), Latch())
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in
        began.open()
        await goOn.wait()
        return request.body
      }
    } _: { _, _, client in
      let task = client.submit(.echo, [5])
      #expect(task.type == .echo)
      await began.wait()
      #expect(await task.state == .waiting)
      let serial = try #require(task.serial)
      #expect(serial >= 50)
      try await withThrowingTaskGroup(of: [UInt8].self) { group in
        for _ in 0..<5 { group.addTask { try await task.value } }
        goOn.open()
        for try await value in group { #expect(value == [5]) }
      }
      #expect(await task.state == .completed)
      #expect(try await task.value == [5])
      #expect(task.serial == serial)
      task.cancel()
      #expect(try await task.value == [5])
    }
  }

  @Test func `a handle shows what its request waits for`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(to: [.host("10.0.0.9", port: 80)])
      simulation.network.connects = .ignored
      let task = client.submit(.echo, [5])
      try await simulation.sleep(for: .seconds(1))
      #expect(await task.state == .created)
      #expect(task.serial != nil)
      task.cancel()
      let error = try await failure { try await task.value }
      #expect(error.code == .cancelled)
      #expect(await task.state == .completed)
    }
  }

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `a plain thread waits for its answer`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let results = Tally<Result<[UInt8], LongLinkError>>()
      for type: MessageType in [.echo, 9] {
        PlainThread.run {
          results.add(
            Result { () throws(LongLinkError) in try client.requestBlocking(type, [1, 2]) }
          )
        }
        await results.reached(type == .echo ? 1 : 2)
      }
      let answer = try results.elements[0].get()
      #expect(answer == [1, 2])
      #expect(throws: LongLinkError.self) { try results.elements[1].get() }
      let ticks = Tally<Tick?>()
      PlainThread.run {
        let tick = Tick(number: 3)
        ticks.add(try? client.requestBlocking(RPCMethod<Tick, Tick>(.echo), tick))
      }
      await ticks.reached(1)
      #expect(ticks.elements == [Tick(number: 3)])
    }
  }

  @Test func `a blocking request from a task traps`() async {
    await #expect(processExitsWith: .failure) {
      let client = try LongLinkClient(to: .host("127.0.0.1", port: 1))
      _ = try client.requestBlocking(1, [UInt8]())
    }
  }

  @Test func `a blocking request from the client's loop traps`() async {
    await #expect(processExitsWith: .failure) {
      let client = try LongLinkClient(to: .host("127.0.0.1", port: 1))
      client.loop.execute { _ = try? client.requestBlocking(1, [UInt8]()) }
      while true { await Task.yield() }
    }
  }
}
