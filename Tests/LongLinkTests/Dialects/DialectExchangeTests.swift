// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Testing
import LongLinkDialects

/// Requests, answers and pushes in protocols that are described.
@Suite struct DialectExchangeTests {
  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `requests side by side are answered in any order`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let count = 40
      let arrived = Tally<[UInt8]>()
      let latches = (0..<count).map { _ in Latch() }
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.echo) { request in
          arrived.add(request.body)
          await latches[Int(request.body[0])].wait()
          return request.body
        }
      }
      // The delimiter of one of them, and its escape byte, are among the bytes.
      let bodies = (0..<count).map { [UInt8($0)] + Array("\r\n\\\r\n".utf8) }
      let tasks = bodies.map { client.submit(spoken.echo, $0) }
      await arrived.reached(count)
      for latch in latches.reversed() { latch.open() }
      for (task, body) in zip(tasks, bodies) { #expect(try await task.value == body) }
      let counters = await client.counters()
      #expect(counters.connects == 1)
      #expect(counters.connections.requestsSent == UInt64(count))
      #expect(counters.connections.responsesReceived == UInt64(count))
      #expect(await server.counters().connections.requestsReceived == UInt64(count))
    }
  }

  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `a scripted server speaks it too`(_ environment: TestEnvironment, _ spoken: Spoken)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(spoken)
      server.on(spoken.echo) { request in
        .hold(untilThereAre: 20, order: .shuffled, .reply(request.body))
      }
      let tasks = (0..<20).map { client.submit(spoken.echo, [UInt8($0)]) }
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index)])
      }
      var pushes = client.pushes(of: spoken.serverPush).makeAsyncIterator()
      server.push(spoken.serverPush, [5, 6])
      #expect(await pushes.next()?.body == [5, 6])
      // In the real worlds a machine that is busy enough lets a silence last too long.
      if environment == .simulated { #expect(server.connectionsAccepted == 1) }
      #expect(server.record.violations == [])
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `a server pushes to one and to all`(_ environment: TestEnvironment, _ spoken: Spoken)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.echo) { request in
          try await request.peer.push(spoken.serverPush, request.body)
          return request.body
        }
      }
      var pushes = client.pushes(of: spoken.serverPush).makeAsyncIterator()
      #expect(try await client.request(spoken.echo, [4]) == [4])
      #expect(await pushes.next()?.body == [4])
      let report = try await server.broadcast(spoken.serverPush, [7])
      #expect(report.queued == 1)
      #expect(await pushes.next()?.body == [7])
      // A type that would be taken for something else is not sent.
      let peer = await server.peers()[0]
      let one = try await failure { try await peer.push(spoken.echo, [1]) }
      #expect(one.code == .unsupported && one.delivery == .notSent)
      let all = try await failure { try await server.broadcast(spoken.echo, [1]) }
      #expect(all.code == .unsupported)
      let large = try await server.broadcast(
        spoken.serverPush, [UInt8](repeating: 0, count: 1 << 25))
      #expect(large.tooLarge == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a client pushes, and a server asks, where the dialect has that`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let received = Tally<[UInt8]>()
      let (server, client) = try await stage.pair(.small) { server in
        server.onPush(0xF100) { push, _ in received.add(push.body) }
        server.route(0x500) { request in
          try await request.peer.request(0x600, request.body)
        }
      }
      client.onRequest(0x600) { request in request.body + [9] }
      try await client.connect()
      try await client.push(0xF100, [1, 2])
      await received.reached(1)
      #expect(received.elements == [[1, 2]])
      #expect(try await client.request(0x500, [3]) == [3, 9])
      _ = server
    }
  }

  @Test(arguments: [Spoken.guarded, .bare, .lines])
  func `a server that may not ask says so`(_ spoken: Spoken) async throws {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await stage.pair(spoken) { _ in }
      try await client.connect()
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      let error = try await failure { try await peer.request(spoken.echo, [1]) }
      #expect(error.code == .unsupported && error.delivery == .notSent)
      #expect(error.detail.contains("does not let a server send requests"))
      let push = try await failure { try await client.push(spoken.serverPush, [1]) }
      #expect(push.code == .unsupported)
    }
  }

  @Test(arguments: Spoken.allCases)
  func `options without a field on the wire are refused here`(_ spoken: Spoken) async throws {
    try await Stage.simulate { stage, _ in
      let (_, client) = try await stage.pair(spoken) { server in
        server.route(spoken.echo) { request in request.body }
      }
      let key = try await failure {
        try await client.request(
          spoken.echo, [1], options: RequestOptions(idempotencyKey: [1]))
      }
      #expect(key.code == .unsupported && key.delivery == .notSent)
      let metadata = try await failure {
        try await client.request(
          spoken.echo, [1], options: RequestOptions(metadata: ["trace": "1"]))
      }
      #expect(metadata.code == .unsupported)
      // A priority is this side's own affair.
      #expect(
        try await client.request(spoken.echo, [1], options: RequestOptions(priority: 3)) == [1])
      // A type of a push cannot be a request's.
      let type = try await failure { try await client.request(spoken.serverPush, [1]) }
      #expect(type.code == .unsupported && type.delivery == .notSent)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a body over the limit is not sent`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let (_, client) = try await stage.pair(.guarded) { server in
        server.route(0x500) { request in [UInt8](repeating: 1, count: request.body.count + 1) }
      }
      let largest = [UInt8](repeating: 7, count: 20_000)
      // The answer is too large, not the request.
      let answer = try await failure { try await client.request(0x500, largest) }
      #expect(answer.code == .rejected && answer.response == .failed)
      let request = try await failure { try await client.request(0x500, largest + [7]) }
      #expect(request.code == .tooLarge && request.delivery == .notSent)
      #expect(try await client.request(0x500, Array(largest.dropLast())).count == 20_000)
      #expect(await client.counters().connects == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a frame over this side's own limit ends the connection`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(.guarded) { $0.limits.maxBody = 100 }
      server.on(0x500) { request in .reply([UInt8](repeating: 1, count: Int(request.body[0]))) }
      #expect(try await client.request(0x500, [100]).count == 100)
      let error = try await failure { try await client.request(0x500, [101]) }
      #expect(error.code == .protocolViolation && error.delivery == .sent)
      guard case .violation(let violation)? = error.closeReason else {
        Issue.record("\(error)")
        return
      }
      #expect(violation.rule == .lengthOverLimit && violation.value == 101)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a body that holds the delimiter is not sent where that is refused`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let description = try FrameDialect.lines(inside: .refused)
      let server = try await stage.serve { server in
        server.route(0x500) { request in request.body }
        server.route(0x501) { _ in Array("a\r\nb".utf8) }
      } configure: {
        $0.dialect = .custom(description)
      }
      let client = try stage.client(of: server) { $0.dialect = .custom(description) }
      let body = Array("a\r\nb".utf8)
      let error = try await failure { try await client.request(0x500, body) }
      #expect(error.code == .encodingFailed && error.delivery == .notSent)
      #expect(try await client.request(0x500, Array("a\rb".utf8)) == Array("a\rb".utf8))
      let answer = try await failure { try await client.request(0x501, [1]) }
      #expect(answer.code == .rejected)
      let peer = await server.peers()[0]
      let push = try await failure { try await peer.push(2, body) }
      #expect(push.code == .encodingFailed)
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `a rejection that is cut off within a delimiter is sent without a body`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let description = try FrameDialect.lines(
        inside: .refused, delimiter: [0x0D, 0x0A, 0x0D, 0x0A])
      let server = try await stage.serve { server in
        server.route(0x500) { request -> [UInt8] in
          throw Rejection(1_000, body: [UInt8](repeating: 0x61, count: 4_094) + request.body)
        }
      } configure: {
        $0.dialect = .custom(description)
      }
      let client = try stage.client(of: server) { $0.dialect = .custom(description) }
      let error = try await failure { try await client.request(0x500, [0x0D, 0x0A, 0x61]) }
      #expect(error.code == .rejected && error.body == [])
      let whole = try await failure { try await client.request(0x500, [0x62, 0x63, 0x61]) }
      #expect(whole.code == .rejected && whole.body.count == 4_096)
      #expect(await client.counters().connects == 1)
    }
  }

  /// A body that fails while it is written.
  private struct Broken: BodyEncodable, Sendable {
    var encodedByteCount: Int { 2 }

    func encode(into output: inout OutputRawSpan) throws(BodyError) {
      throw BodyError(.malformed)
    }
  }

  @Test func `a body that fails while it is written ends one exchange, and no connection`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (_, client) = try await stage.pair(.guarded) { server in
        server.route(0x500) { _ in Broken() }
        server.route(0x501) { request in request.body }
      }
      let answer = try await failure { try await client.request(0x500, [1]) }
      #expect(answer.code == .rejected)
      let question = try await failure { try await client.request(0x501, Broken()) }
      #expect(question.code == .encodingFailed && question.delivery == .notSent)
      #expect(try await client.request(0x501, [2]) == [2])
      #expect(await client.counters().connects == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a late response is not taken for another's if serials are few`(
    _ environment: TestEnvironment
  )
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(FrameDialect.small(serials: 20...26))
      server.on(0x500, .hold(untilThereAre: 100, .reply([99])))
      server.on(0x501) { .reply($0.body) }
      let task = client.submit(0x500, [1])
      try await server.waitForRequest(of: 0x500)
      task.cancel()
      _ = try await failure { try await task.value }
      for number in 0..<20 as Range<UInt8> {
        #expect(try await client.request(0x501, [number]) == [number])
      }
      #expect(server.requests.filter { $0.serial == 20 }.count == 1)
      server.releaseHeld()
      try await stage.until { await client.counters().requests.lateReplies == 1 }
      for number in 0..<7 as Range<UInt8> {
        #expect(try await client.request(0x501, [number]) == [number])
      }
      #expect(server.requests.filter { $0.serial == 20 }.count == 2)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `serials begin where the dialect says, and wrap`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(FrameDialect.small(serials: 20...26))
      server.on(0x500) { .reply($0.body) }
      for number in 0..<20 as Range<UInt8> {
        #expect(try await client.request(0x500, [number]) == [number])
      }
      let serials = server.requests.map(\.serial)
      #expect(serials == (0..<20).map { 20 + $0 % 7 })
      await server.stop()
    }
  }

  @Test func `with few serials, few requests are in flight`() async throws {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await stage.scripted(FrameDialect.small(serials: 1...8))
      server.on(0x500) { .hold(untilThereAre: 4, .reply($0.body)) }
      let tasks = (0..<4).map { client.submit(0x500, [UInt8($0)]) }
      let beyond = client.submit(0x500, [4])
      let error = try await failure { try await beyond.value }
      #expect(error.code == .overloaded && error.delivery == .notSent)
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index)])
      }
      #expect(await client.counters().requests.turnedAway == 1)
      await server.stop()
    }
  }

  @Test func `a retry after a loss may get the serial of another lost request`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (server, client) = try await stage.scripted(FrameDialect.small(serials: 1...8))
      server.on(0x500) { .reply($0.body) }
      server.on(0x501, .never)
      let (outcomes, told) = AsyncStream.makeStream(of: Result<[UInt8], LongLinkError>.self)
      client.request(0x501, [1], on: .connectionLoop) { lost in
        told.yield(lost)
        client.request(0x500, [2], on: .connectionLoop) { told.yield($0) }
      }
      #expect(try await client.request(0x500, [0]) == [0])
      let other = client.submit(0x501, [3])
      // Of eight serials the first and the third are in use, and the third would be next.
      for number in 4...9 as ClosedRange<UInt8> {
        #expect(try await client.request(0x500, [number]) == [number])
      }
      server.resetConnections()
      var outcome = outcomes.makeAsyncIterator()
      let first = await outcome.next()
      #expect(throws: LongLinkError.self) { try first?.get() }
      #expect(try await outcome.next()?.get() == [2])
      let error = try await failure { try await other.value }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(server.requests.last?.serial == 3)
      await server.stop()
    }
  }
}
