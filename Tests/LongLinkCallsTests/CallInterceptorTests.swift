// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Functions around the exchanges of a call client.
@Suite struct CallInterceptorTests {
  private let read = RawMethod.raw(1, .reading)

  private static func with(_ interceptors: CallInterceptor...) -> CallConfiguration {
    CallConfiguration(interceptors: interceptors)
  }

  // MARK: What they see and change

  @Test func `the first interceptor is the outermost, and each changes request and response`()
    async throws
  {
    let seen = Tally<String>()
    let named = { @Sendable (name: String) -> CallInterceptor in
      { request, next in
        seen.add("\(name) begins")
        var request = request
        request.options.metadata["path", default: ""] += name
        let body = try await next(request)
        seen.add("\(name) ends")
        return body + Array(name.utf8)
      }
    }
    try await Scene.run(Self.with(named("a"), named("b"))) { scene async throws in
      scene.server.on(1, .reply([9]))
      let answer = try await scene.api.call(read, [7])
      #expect(answer == [9] + Array("ba".utf8))
      let request = try #require(scene.server.requests(of: 1).first)
      #expect(request.body == [7] && request.metadata?.entries["path"] == "ab")
    }
    #expect(seen.elements == ["a begins", "b begins", "b ends", "a ends"])
  }

  @Test func `an interceptor sees the type, the service, the body and the deadline`() async throws {
    let seen = Tally<OutboundRequest>()
    let method = RPCMethod<[UInt8], [UInt8]>(5, "Find", of: "shop")
    try await Scene.run(
      Self.with { request, next in
        seen.add(request)
        let left = request.clock.now.duration(to: request.deadline)
        #expect(left > .milliseconds(2_999) && left <= .seconds(3))
        return try await next(request)
      }
    ) { scene async throws in
      scene.server.on(5, .reply([9]))
      let policy = CallPolicy(RequestOptions(timeout: .seconds(3), priority: 4))
      #expect(try await scene.api.call(method, [7], policy: policy) == [9])
    }
    let request = try #require(seen.elements.first)
    #expect(request.type == 5 && request.service == "shop" && !request.isRefresh)
    #expect(try request.body.encodedBytes() == [7] && request.options.priority == 4)
    #expect(request.operation == "request shop/Find type=5")
  }

  @Test func `calls of groups meet interceptors`() async throws {
    let seen = Tally<MessageType>()
    try await Scene.run(
      Self.with { request, next in
        seen.add(request.type)
        return try await next(request)
      }
    ) { scene async throws in
      scene.server.on(1) { .reply($0.body) }
      let calls = (0..<3).map { RawMethod.raw(1)([UInt8($0)]) }
      let results = await scene.api.group(calls).results
      #expect(try results.map { try $0.get() } == [[0], [1], [2]])
    }
    #expect(seen.elements == [1, 1, 1])
  }

  // MARK: Failures

  @Test func `an interceptor that refuses sends nothing`() async throws {
    try await Scene.run(Self.with { _, _ in throw Refusal("there is\nno token") }) { scene in
      let error = try await failure { try await scene.api.call(read, [7]) }
      #expect(error.code == .intercepted && error.delivery == .notSent)
      #expect(error.link.detail == #"there is\nno token"#)
      #expect(error.link.messageType == 1)
      #expect(scene.server.requests.isEmpty)
    }
  }

  @Test func `an interceptor that does not go on answers by itself`() async throws {
    try await Scene.run(Self.with { _, _ in [4, 2] }) { scene async throws in
      #expect(try await scene.api.call(read, [7]) == [4, 2])
      #expect(scene.server.requests.isEmpty)
    }
  }

  @Test func `an interceptor replaces an error by a value, and a value by an error`() async throws {
    try await Scene.run(
      Self.with { request, next in
        do throws(LongLinkError) {
          _ = try await next(request)
        } catch {
          #expect(error.response == 1_234 && error.delivery == .answered)
          return [1]
        }
        throw Refusal("stale")
      }
    ) { scene async throws in
      scene.server.on(1, [.reply(code: 1_234), .reply([9])])
      #expect(try await scene.api.call(read, [7]) == [1])
      let error = try await failure { try await scene.api.call(read, [7]) }
      // Its handler ran.
      #expect(error.code == .intercepted && error.delivery == .answered)
    }
  }

  @Test func `the outer interceptor sees what the inner one throws`() async throws {
    let seen = Tally<LongLinkError>()
    try await Scene.run(
      Self.with(
        { request, next in
          do throws(LongLinkError) {
            return try await next(request)
          } catch {
            seen.add(error)
            throw error
          }
        }, { _, _ in throw Refusal("no") })
    ) { scene in
      let error = try await failure { try await scene.api.call(read, [7]) }
      #expect(error.code == .intercepted && error.link == seen.elements.first)
    }
  }

  // MARK: Several requests

  @Test func `an interceptor that sends again has the same key, and its error covers all requests`()
    async throws
  {
    let own = Tally<LongLinkError>()
    try await Scene.run(
      Self.with { request, next in
        do throws(LongLinkError) {
          return try await next(request)
        } catch {
          own.add(error)
        }
        do throws(LongLinkError) {
          return try await next(request)
        } catch {
          own.add(error)
          throw error
        }
      }
    ) { scene async throws in
      scene.server.handshake = .welcome(keySpace: [UInt8](1...16))
      scene.server.on(1, [.reply(code: 1_000), .refuse(.forbidden)])
      let policy = CallPolicy(RequestOptions(retry: .once))
      let error = try await failure { try await scene.api.call(.raw(1, policy), [7]) }
      // The last one was refused, but the one before, of the same key, has run.
      #expect(own.elements.map(\.delivery) == [.answered, .sent])
      #expect(error.link.response == .forbidden && error.delivery == .answered)
      let keys = scene.server.requests(of: 1).map { $0.metadata?.idempotencyKey ?? [] }
      #expect(keys.count == 2 && keys[0] == keys[1] && keys[0].count == 16)
    }
  }

  @Test func `a timeout of an interceptor cannot outlast the call`() async throws {
    try await Scene.run(
      Self.with { request, next in
        var request = request
        request.options.timeout = .seconds(1_000)
        return try await next(request)
      }
    ) { scene in
      scene.server.on(1, .never)
      let start = scene.client.loop.clock.now
      let policy = CallPolicy(RequestOptions(timeout: .seconds(2)))
      let error = try await failure { try await scene.api.call(read, [7], policy: policy) }
      #expect(error.code == .deadlineExceeded && error.delivery == .sent)
      #expect(start.duration(to: scene.client.loop.clock.now) < .milliseconds(2_010))
    }
  }

  @Test func `a shorter timeout of an interceptor ends its request alone`() async throws {
    try await Scene.run(
      Self.with { request, next in
        var first = request
        first.options.timeout = .seconds(1)
        do throws(LongLinkError) {
          return try await next(first)
        } catch {
          #expect(error.code == .deadlineExceeded)
          return try await next(request)
        }
      }
    ) { scene async throws in
      scene.server.on(1, [.never, .reply([9])])
      #expect(try await scene.api.call(read, [7]) == [9])
    }
  }

  @Test func `a race of two requests ends both`() async throws {
    try await Scene.run(
      Self.with { request, next in
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
          for _ in 0..<2 { group.addTask { try await next(request) } }
          defer { group.cancelAll() }
          return try await group.next() ?? []
        }
      }
    ) { scene async throws in
      scene.server.on(1, [.never, .reply([9])])
      #expect(try await scene.api.call(read, [7]) == [9])
      try await scene.until { scene.server.cancels.count == 1 }
    }
  }
}
