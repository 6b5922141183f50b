// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Functions around the handlers of a server.
@Suite struct InterceptorTests {
  private static let ann = Principal("ann", attributes: ["role": "editor"])

  /// A message that never decodes.
  private struct Nothing: BodyEncodable & BodyDecodable {
    var encodedByteCount: Int { 0 }

    func encode(into output: inout OutputRawSpan) {}

    init(decoding body: RawSpan) throws(BodyError) { throw BodyError(.malformed) }
  }

  /// 10 is synchronous, 11 a task; 12 to 14 carry items. Each adds to what was seen.
  private static func routes(_ server: LongLinkServer, _ seen: Tally<String>) {
    server.onConnect { $0.identified(as: ann.record, security: nil) }
    server.route(.echo) { $0.body }
    server.route(10) { request in
      seen.add("handler 10")
      return request.body
    }
    server.route(11) { request async in
      seen.add("handler 11")
      return request.body
    }
    let shapes: [(MessageType, StreamShape)] = [
      (12, .requestItems), (13, .responseItems), (14, [.requestItems, .responseItems]),
    ]
    for (type, shape) in shapes {
      server.routeStream(type, shape) { request, items, writer in
        seen.add("handler \(type)")
        if shape.contains(.requestItems) { for try await _ in items {} }
        if shape.contains(.responseItems) { try await writer.write([6]) }
        seen.add("handler \(type) ends")
        return [UInt8(type.rawValue)]
      }
    }
    server.route(RPCMethod<Nothing, Nothing>(15)) { message, _ in
      seen.add("handler 15")
      return message
    }
  }

  /// Makes a request of the shape of its type, and returns the body of the response.
  private static func call(
    _ type: MessageType, _ client: LongLinkClient, _ body: [UInt8] = [5],
    options: StreamOptions = StreamOptions()
  ) async throws -> [UInt8] {
    switch type {
    case 12:
      return try await client.sendItems(type, body, options: options) { try await $0.write([1]) }
    case 13:
      let stream = client.stream(type, body, options: options)
      for try await _ in stream {}
      return try #require(stream.response)
    case 14:
      return try await client.exchange(type, body, options: options) { items, writer in
        writer.finish()
        for try await _ in items {}
      }
    default:
      let options = RequestOptions(timeout: options.timeout, metadata: options.metadata)
      return try await client.request(type, body, options: options)
    }
  }

  /// Runs a body with a server that has interceptors, over a connection.
  private static func run(
    _ seen: Tally<String>, _ setUp: @escaping @Sendable (LongLinkServer) -> Void,
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(
        setUp: { server in
          setUp(server)
          routes(server, seen)
        }, configure: { $0.limits.maxInFlight = 1 })
      try await body(stage, server, try stage.client(of: server))
    }
  }

  private static let types: [MessageType] = [10, 11, 12, 13, 14]

  // MARK: What they see, and in which order

  @Test(arguments: types)
  func `the first interceptor is the outermost, around handlers of each form`(
    _ type: MessageType
  ) async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      for name in ["first", "second"] {
        server.intercept { request, next in
          seen.add("\(name) begins \(request.type)")
          let body = try await next(request)
          seen.add("\(name) ends")
          return body
        }
      }
    } _: { _, server, client async throws in
      let wanted: [UInt8] = type == 10 || type == 11 ? [5] : [UInt8(type.rawValue)]
      #expect(try await Self.call(type, client) == wanted)
    }
    let isStream = type.rawValue > 11
    #expect(
      seen.elements == ["first begins \(type)", "second begins \(type)", "handler \(type)"]
        + (isStream ? ["handler \(type) ends"] : []) + ["second ends", "first ends"])
  }

  @Test func `an interceptor sees the principal, the metadata and the deadline`() async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { request, next in
        let left = request.deadline.map { request.clock.now.duration(to: $0) }
        #expect(left.map { $0 > .seconds(2) && $0 <= .seconds(3) } == true)
        #expect(request.peer.principal == Self.ann && request.metadata == ["trace": "7"])
        #expect(request.body == [5])
        seen.add("interceptor \(request.type)")
        return try await next(request)
      }
    } _: { _, _, client async throws in
      let options = StreamOptions(timeout: .seconds(3), metadata: ["trace": "7"])
      for type in Self.types { _ = try await Self.call(type, client, options: options) }
    }
    for type in Self.types { #expect(seen.elements.contains("interceptor \(type)")) }
  }

  @Test func `an interceptor for some types is around no others`() async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept([11, 13]) { request, next in
        seen.add("interceptor \(request.type)")
        return try await next(request)
      }
    } _: { _, _, client async throws in
      for type in Self.types { _ = try await Self.call(type, client) }
    }
    let found = seen.elements.filter { $0.hasPrefix("interceptor") }
    #expect(found == ["interceptor 11", "interceptor 13"])
  }

  @TaskLocal private static var trace = "none"

  @Test func `task-local values reach the handler`() async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { request, next in
        try await Self.$trace.withValue("7") { try await next(request) }
      }
      server.route(20) { _ in Array(Self.trace.utf8) }
      server.route(21) { _ async in Array(Self.trace.utf8) }
    } _: { _, _, client async throws in
      for type: MessageType in [20, 21] {
        #expect(try await client.request(type, []) == Array("7".utf8))
      }
    }
  }

  private actor Keeper {
    func pass(_ request: InboundRequest, _ next: NextHandler) async throws -> any BodyEncodable
      & Sendable
    {
      try await next(request)
    }
  }

  @Test func `handlers run at their places under an interceptor of an actor`() async throws {
    let seen = Tally<String>()
    let keeper = Keeper()
    try await Self.run(seen) { server in
      server.intercept { request, next in try await keeper.pass(request, next) }
      server.route(20) { request in
        try request.peer.pushNow(7, [1])
        #expect(request.peer.loop.isCurrent)
        return []
      }
      server.route(21) { request async in
        #expect(request.peer.loop.isCurrent)
        return []
      }
      server.routeStream(22, .responseItems) { request, _, _ in
        #expect(request.peer.loop.isCurrent)
        return []
      }
    } _: { _, _, client async throws in
      for type: MessageType in [20, 21] { _ = try await client.request(type, []) }
      for try await _ in client.stream(22, []) {}
    }
  }

  // MARK: What they answer

  @Test(arguments: types)
  func `an interceptor that rejects answers in the handler's place`(
    _ type: MessageType
  ) async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { _, _ in throw Rejection(1_234, body: [9]) }
    } _: { stage, server, client async throws in
      let error = try await failure { try await Self.call(type, client) }
      #expect(error.response == 1_234 && error.body == [9] && error.delivery == .answered)
      try await stage.until { await server.counters().requestsRunning == 0 }
      #expect(await server.counters().connections.handlersFailed == 0)
    }
    #expect(seen.elements == [])
  }

  @Test(arguments: types)
  func `an interceptor that does not go on returns a response of its own`(
    _ type: MessageType
  ) async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { _, _ in [3, 2, 1] as [UInt8] }
    } _: { stage, server, client async throws in
      #expect(try await Self.call(type, client) == [3, 2, 1])
      try await stage.until { await server.counters().requestsRunning == 0 }
    }
    #expect(seen.elements == [])
  }

  @Test(arguments: types)
  func `an interceptor changes the response`(_ type: MessageType) async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { request, next in
        [0] + (try await next(request).encodedBytes())
      }
    } _: { _, _, client async throws in
      let own: UInt8 = type.rawValue > 11 ? UInt8(type.rawValue) : 5
      #expect(try await Self.call(type, client) == [0, own])
    }
  }

  private struct Broken: Error {}

  @Test func `an interceptor's error counts as the handler's, and it sees the handler's`()
    async throws
  {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept([10]) { _, _ in throw Broken() }
      server.intercept([20]) { request, next in
        do {
          return try await next(request)
        } catch is Broken {
          throw Rejection(1_001, body: [4])
        }
      }
      server.route(20) { _ in throw Broken() }
    } _: { _, server, client async throws in
      let own = try await failure { try await Self.call(10, client) }
      #expect(own.response == .failed && own.delivery == .answered)
      #expect(await server.counters().connections.handlersFailed == 1)
      let changed = try await failure { try await client.request(20, []) }
      #expect(changed.response == 1_001 && changed.body == [4])
      #expect(await server.counters().connections.handlersFailed == 1)
    }
    #expect(seen.elements == [])
  }

  @Test func `a body that does not decode is refused, also under an interceptor`() async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { request, next in try await next(request) }
    } _: { _, server, client async throws in
      let error = try await failure { try await client.request(15, [1]) }
      #expect(error.response == .malformed && error.delivery == .refused)
      #expect(await server.counters().connections.undecodable == 1)
    }
    #expect(seen.elements == [])
  }

  @Test func `an access rule refuses before interceptors, over short links as well`() async throws {
    let seen = Tally<String>()
    try await Stage.serving(in: .short) { server in
      Self.routes(server, seen)
      server.intercept { request, next in
        seen.add("interceptor \(request.type)")
        return try await next(request)
      }
      server.require(.authenticated, for: 10)
    } _: { _, server, client in
      let error = try await failure { try await Self.call(10, client) }
      #expect(error.response == .forbidden && error.delivery == .refused)
      #expect(try await Self.call(11, client) == [5])
      #expect(try await Self.call(13, client) == [13])
    }
    #expect(
      seen.elements == [
        "interceptor 11", "handler 11", "interceptor 13", "handler 13", "handler 13 ends",
      ])
  }

  // MARK: Cancels and deadlines

  /// How a request ends while an interceptor holds it.
  enum Ending: CaseIterable {
    case cancel, deadline, connection
  }

  /// Ends a request of a type in the middle.
  private static func end(
    _ ending: Ending, _ type: MessageType, _ client: LongLinkClient, _ stage: Stage,
    _ server: LongLinkServer
  ) async throws {
    let options = StreamOptions(timeout: ending == .deadline ? .seconds(2) : .seconds(100))
    let task = stage.spawn { try await Self.call(type, client, options: options) }
    try await stage.until { await server.counters().requestsRunning == 1 }
    switch ending {
    case .cancel: task.cancel()
    case .deadline: break
    case .connection: await client.close()
    }
    _ = try? await task.value
  }

  @Test(arguments: types, Ending.allCases)
  func `an interceptor that waits is cancelled with its request, and the handler not called`(
    _ type: MessageType, _ ending: Ending
  ) async throws {
    let seen = Tally<String>()
    try await Self.run(seen) { server in
      server.intercept { request, next in
        do {
          try await request.clock.sleep(for: .seconds(1_000))
        } catch {
          seen.add("cancelled")
          throw error
        }
        return try await next(request)
      }
    } _: { stage, server, client async throws in
      try await Self.end(ending, type, client, stage, server)
      try await stage.until { seen.elements == ["cancelled"] }
      try await stage.until { await server.counters().requestsRunning == 0 }
    }
    #expect(seen.elements == ["cancelled"])
  }

  @Test(arguments: types, Ending.allCases)
  func `an interceptor that is deaf to cancels keeps its place, and the handler is not called`(
    _ type: MessageType, _ ending: Ending
  ) async throws {
    let seen = Tally<String>()
    let latch = Latch()
    try await Self.run(seen) { server in
      server.intercept { request, next in
        if request.type == .echo { return [] as [UInt8] }
        await latch.wait()
        seen.add("goes on")
        return try await next(request)
      }
    } _: { stage, server, client async throws in
      try await Self.end(ending, type, client, stage, server)
      if ending != .connection {
        // It still counts as one of the connection's requests.
        let error = try await failure { try await client.request(.echo, []) }
        #expect(error.response == .overloaded && error.delivery == .refused)
      }
      if ending == .connection {
        try await stage.until { await server.counters().openConnections == 0 }
      }
      latch.open()
      try await stage.until { seen.elements == ["goes on"] }
      guard ending != .connection else { return }
      try await stage.until { await server.counters().connections.droppedResponses == 1 }
      _ = try await client.request(.echo, [])
    }
    #expect(seen.elements == ["goes on"])
  }
}
