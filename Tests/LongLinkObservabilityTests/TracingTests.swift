// SPDX-License-Identifier: Apache-2.0

#if Operations
import InMemoryTracing
import LongLink
import LongLinkCore
import LongLinkObservability
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing
import Tracing

@Suite struct TracingTests {
  @Test func `a trace goes from the client to the server and back to the client`() async throws {
    let tracer = InMemoryTracer()
    let tracing = LongLinkTracing(tracer: tracer)
    let ask: MessageType = 7
    try await World.run(
      client: { $0.observe(with: tracing) }, server: { $0.observe(with: tracing) },
      routes: { server in
        server.route(ask) { request async throws -> [UInt8] in
          try await request.peer.request(8, request.body)
        }
      }, handlers: { $0.onRequest(8) { request in request.body } }
    ) { world in
      try await withTracer(tracer) {
        try await withSpan("application") { _ in
          let answer = try await world.client.request(ask, [1])
          #expect(answer == [1])
        }
      }
    }
    let spans = tracer.finishedSpans
    let all = spans.map { "\($0.kind) \($0.operationName)" }
    #expect(spans.count == 5, "\(all)")
    #expect(Set(spans.map(\.traceID)).count == 1, "\(all)")
    // From the innermost outwards.
    var chain = spans.filter { $0.kind == .server && $0.parentSpanID != nil }
    chain = chain.filter { span in !spans.contains { $0.parentSpanID == span.spanID } }
    var kinds: [SpanKind] = []
    var next = chain.first
    while let span = next {
      kinds.append(span.kind)
      next = spans.first { $0.spanID == span.parentSpanID }
    }
    #expect(kinds == [.server, .client, .server, .client, .internal], "\(all)")
    for span in spans where span.kind != .internal {
      #expect(span.attributes.get("rpc.system.name") == .string("longlink"))
      #expect(span.status == nil && span.attributes.get("error.type") == nil)
    }
  }

  @Test func `a failure is in the spans of both sides`() async throws {
    let tracer = InMemoryTracer()
    let tracing = LongLinkTracing(tracer: tracer)
    try await World.run(
      client: { $0.observe(with: tracing) }, server: { $0.observe(with: tracing) }
    ) { world in
      _ = try? await world.client.request(World.fails, [1, 173])
      try await world.simulation.sleep(for: .seconds(1))
    }
    let spans = tracer.finishedSpans
    #expect(spans.count == 2 && tracer.activeSpans.isEmpty)
    for span in spans {
      #expect(span.attributes.get("error.type") == .string("429"))
      #expect(span.status?.code == .error && span.status?.message == nil)
    }
    let client = try #require(spans.first { $0.kind == .client })
    #expect(client.attributes.get("longlink.delivery") == .string("answered"))
    #expect(client.events.map(\.name) == ["longlink.attempt"])
  }

  @Test func `each attempt is an event of one span`() async throws {
    let tracer = InMemoryTracer()
    let tracing = LongLinkTracing(tracer: tracer)
    let calls = Mutex(0)
    try await World.run(
      client: { $0.observe(with: tracing) },
      routes: { server in
        server.route(7) { request async throws -> [UInt8] in
          let number = calls.withLock {
            $0 += 1
            return $0
          }
          guard number == 1 else { return request.body }
          // The connection is cut while the first attempt runs.
          try await EventLoop.current?.sleep(for: .seconds(100))
          return []
        }
      }
    ) { world in
      let task = world.simulation.spawn {
        try await world.client.request(
          7, [1], options: RequestOptions(timeout: .seconds(60), retry: .idempotent))
      }
      try await world.simulation.sleep(for: .seconds(1))
      world.simulation.network.loseAllLinks()
      #expect(try await task.value == [1])
    }
    let span = try #require(tracer.finishedSpans.first)
    #expect(tracer.finishedSpans.count == 1)
    #expect(span.events.map { $0.attributes.get("longlink.attempt") } == [.int64(1), .int64(2)])
  }

  @Test func `the span of a stream is its opening`() async throws {
    let tracer = InMemoryTracer()
    let tracing = LongLinkTracing(tracer: tracer)
    try await World.run(
      client: { $0.observe(with: tracing) }, server: { $0.observe(with: tracing) },
      routes: { server in
        server.routeStream(World.items, .responseItems) { _, _, writer in
          for number: UInt8 in 0..<3 { try await writer.write([number]) }
          try await EventLoop.current?.sleep(for: .seconds(1_000))
          return [] as [UInt8]
        }
      }
    ) { world in
      var items = world.client.stream(World.items, [] as [UInt8]).makeAsyncIterator()
      for number: UInt8 in 0..<3 {
        let item = try await items.next()
        #expect(item == [number])
      }
      #expect(tracer.finishedSpans.map(\.kind).count == 2)
      #expect(tracer.activeSpans.isEmpty)
    }
    #expect(tracer.finishedSpans.count == 2)
  }

  @Test func `what is no trace context starts a trace of its own`() async throws {
    let tracer = InMemoryTracer()
    let tracing = LongLinkTracing(tracer: tracer)
    try await World.run(server: { $0.observe(with: tracing) }) { world in
      for text in [String(repeating: "a", count: 600), "a\tb", "é", ""] {
        let metadata = [
          "in-memory-trace-id": text, "in-memory-span-id": text, "traceparent": text,
        ]
        _ = try await world.client.request(
          World.echo, [1], options: RequestOptions(metadata: metadata))
      }
    }
    // None of them has a parent.
    #expect(tracer.finishedSpans.allSatisfy { $0.parentSpanID == nil })
    #expect(tracer.finishedSpans.count == 4)
  }
}
#endif
