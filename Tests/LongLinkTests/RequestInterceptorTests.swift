// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Functions of the application that are called before each request of a client.
@Suite struct RequestInterceptorTests {
  /// What an interceptor saw of a request that has ended.
  struct Ended: Equatable, Sendable {
    var type: MessageType
    var method = ""
    var isStream = false
    var code: LongLinkError.Code?
    var time = Duration.zero
  }

  @TaskLocal static var trace = "none"

  private static let say = RPCMethod<[UInt8], [UInt8]>(.echo, "Say", of: "chat.Chat")
  private static let ticks = RPCMethod<[UInt8], Streamed<[UInt8]>>(10, "Ticks", of: "chat.Chat")
  private static let sum = RPCMethod<Streamed<[UInt8]>, [UInt8]>(11, "Sum", of: "chat.Chat")
  private static let talk = RPCMethod<Streamed<[UInt8]>, Streamed<[UInt8]>>(
    12, "Talk", of: "chat.Chat")

  /// Runs a body with a client that adds the trace to each request, and tells how each has ended.
  /// The server tells the traces that it gets.
  private func run(
    _ environment: TestEnvironment = .simulated, _ more: [RequestInterceptor] = [],
    _ body:
      @escaping @Sendable (
        Stage, LongLinkServer, LongLinkClient, _ traces: Tally<String>, Tally<Ended>
      ) async throws -> Void
  ) async throws {
    let (traces, ends) = (Tally<String>(), Tally<Ended>())
    let tracing: RequestInterceptor = { request in
      request.options.metadata["trace"] = Self.trace
      let begun = Ended(
        type: request.type,
        method: request.service.isEmpty ? "" : "\(request.service)/\(request.method)",
        isStream: request.isStream)
      request.whenEnded { error, time in
        var ended = begun
        (ended.code, ended.time) = (error?.code, time)
        ends.add(ended)
      }
    }
    try await Stage.serving(
      in: environment,
      { server in
        server.intercept { request, next in
          traces.add(request.metadata["trace"] ?? "nothing")
          return try await next(request)
        }
        server.routeStreams()
      }, client: { $0.interceptors = [tracing] + more }
    ) { stage, server, client in
      try await body(stage, server, client, traces, ends)
    }
  }

  @Test(arguments: TestEnvironment.allCases + [.short])
  func `requests and streams in all forms pass through`(_ environment: TestEnvironment)
    async throws
  {
    try await run(environment) { stage, server, client, traces, ends in
      let executor = CallbackExecutor.connectionLoop
      try await Self.$trace.withValue("t") {
        #expect(try await client.request(.echo, [1]) == [1])
        #expect(try await client.request(Self.say, [2]) == [2])
        #expect(try await client.submit(Self.say, [3]).value == [3])
        var items: [[UInt8]] = []
        for try await item in client.stream(Self.ticks, [2]) { items.append(item) }
        for try await item in client.stream(10, [2]) { items.append(item) }
        #expect(items == [[0], [1], [0], [1]])
        let sum = try await client.sendItems(Self.sum) { try await $0.write([1, 2]) }
        #expect(sum == Array("2".utf8))
        _ = try await client.sendItems(11, []) { try await $0.write([1]) }
        let done = Tally<Void>()
        client.request(Self.say, [4], on: executor) { _ in done.add(()) }
        client.request(.echo, [5], on: executor) { _ in done.add(()) }
        client.stream(Self.ticks, [1], on: executor) { _ in
        } completion: { _ in
          done.add(())
        }
        client.stream(10, [1], on: executor) { _ in
        } completion: { _ in
          done.add(())
        }
        await done.reached(4)
        #expect(ends.count == 11)
        guard environment != .short else { return }
        // A short link carries no items in both directions.
        try await client.exchange(Self.talk) { read, writer in
          try await writer.write([1])
          for try await item in read {
            #expect(item == [1])
            break
          }
        }
        _ = try await client.exchange(12, []) { _, writer in try await writer.write([1]) }
      }
      let count = environment == .short ? 11 : 13
      #expect(traces.elements == Array(repeating: "t", count: count))
      #expect(ends.count == count && ends.elements.allSatisfy { $0.code == nil })
      #expect(ends.elements.count { $0.isStream } == count - 5)
      let names = Set(ends.elements.map(\.method))
      let all: Set = ["", "chat.Chat/Say", "chat.Chat/Ticks", "chat.Chat/Sum", "chat.Chat/Talk"]
      #expect(names == (environment == .short ? all.subtracting(["chat.Chat/Talk"]) : all))
    }
  }

  @Test func `the peers of a client pass through, too`() async throws {
    let prepared = Tally<[UInt8]>()
    let traces = Tally<String>()
    try await Stage.serving(
      { server in
        server.route(.echo) { request in
          traces.add(request.metadata["trace"] ?? "nothing")
          return request.body
        }
      },
      client: {
        $0.interceptors = [{ $0.options.metadata["trace"] = "t" }]
        $0.prepare = { prepared.add(try await $0.request(.echo, [7])) }
      }
    ) { _, _, client in
      try await client.expectEcho([1])
      #expect(prepared.elements == [[7]] && traces.elements == ["t", "t"])
    }
  }

  @Test func `the end is told once, with its error and time`() async throws {
    try await run { stage, _, client, _, ends in
      try await client.connect()
      _ = try await failure { try await client.request(.fail, []) }
      let options = RequestOptions(timeout: .seconds(2))
      _ = try await failure { try await client.request(.hang, [], options: options) }
      let task = client.submit(.hang, [], options: .patient)
      try await stage.clientLoop.sleep(for: .seconds(3))
      task.cancel()
      _ = try await failure { try await task.value }
      let awaiting = stage.spawn { try await client.request(.hang, [], options: .patient) }
      try await stage.until { await client.counters().requestsOpen == 1 }
      awaiting.cancel()
      await ends.reached(4)
      // A stream that is left.
      for try await _ in client.stream(15, []) { break }
      await ends.reached(5)
      _ = try await failure { for try await _ in client.stream(13, []) {} }
      await client.close()
      _ = try await failure { try await client.request(.echo, []) }
      let codes: [LongLinkError.Code] = [
        .rejected, .deadlineExceeded, .cancelled, .cancelled, .cancelled, .rejected, .closed,
      ]
      #expect(ends.elements.map(\.code) == codes)
      #expect(ends.elements[1].time >= .seconds(2) && ends.elements[1].time < .seconds(2.1))
      #expect(ends.elements[2].time >= .seconds(3) && ends.elements[2].time < .seconds(3.1))
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `what an interceptor refuses is not sent, and those before are told`(
    _ environment: TestEnvironment
  ) async throws {
    struct Full: Error, CustomStringConvertible {
      let description = "the quota is used up"
    }
    let later = Tally<Void>()
    try await run(
      environment, [{ _ in throw Full() }, { _ in later.add(()) }]
    ) { _, server, client, traces, ends in
      let done = Tally<LongLinkError>()
      done.add(try await failure { try await client.request(.echo, []) })
      done.add(try await failure { try await client.request(Self.say, []) })
      done.add(try await failure { try await client.submit(.echo, []).value })
      done.add(try await failure { for try await _ in client.stream(10, [1]) {} })
      done.add(
        try await failure { try await client.sendItems(11, []) { try await $0.write([1]) } })
      let handle = client.request(.echo, [], on: .connectionLoop) {
        if case .failure(let error) = $0 { done.add(error) }
      }
      client.stream(10, [1], on: .connectionLoop) { _ in
      } completion: {
        if case .failure(let error) = $0 { done.add(error) }
      }
      await done.reached(7)
      #expect(await handle.state == .completed && handle.serial == nil)
      for error in done.elements {
        #expect(error.code == .intercepted && error.delivery == .notSent, "\(error)")
        #expect(error.detail == "the quota is used up")
      }
      await ends.reached(7)
      #expect(ends.elements.allSatisfy { $0.code == .intercepted })
      #expect(traces.count == 0 && later.count == 0)
      // Nothing was submitted, so that nothing has connected.
      #expect(client.state == .idle)
      #expect(await client.counters().requests.submitted == 0)
    }
  }

  @Test func `an error of the library is thrown as it is, and a cancellation as one`()
    async throws
  {
    let given = LongLinkError(.overloaded, delivery: .sent, doing: "test", detail: "so it is")
    for (thrown, code) in [(given, .overloaded), (CancellationError(), .cancelled)]
      as [(any Error, LongLinkError.Code)]
    {
      try await run(.simulated, [{ _ in throw thrown }]) { _, _, client, _, ends in
        let error = try await failure { try await client.request(.echo, []) }
        #expect(error.code == code && error.delivery == .notSent)
        await ends.reached(1)
        #expect(ends.elements[0].code == code)
      }
    }
  }

  @Test func `they are called in order, over the method's options, and told in reverse`()
    async throws
  {
    let calls = Tally<String>()
    func named(_ name: String) -> RequestInterceptor {
      { request in
        calls.add("\(name) \(request.options.metadata["a"] ?? "-")")
        request.options.metadata["a", default: ""] += name
        if name == "2" { request.options.timeout = .seconds(5) }
        request.whenEnded { _, _ in calls.add("\(name) ended") }
      }
    }
    let interceptors = [named("1"), named("2")]
    try await Stage.pair(client: { $0.interceptors = interceptors }) { stage, _, client in
      try await client.connect()
      let method = RPCMethod<[UInt8], [UInt8]>(
        .hang, "Hang", options: RequestOptions(metadata: ["a": "m"]))
      let start = stage.clientLoop.clock.now
      let error = try await failure { try await client.request(method, []) }
      #expect(error.code == .deadlineExceeded)
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time >= .seconds(5) && time < .seconds(5.1))
      #expect(calls.elements == ["1 m", "2 m1", "2 ended", "1 ended"])
    }
  }
}
