// SPDX-License-Identifier: Apache-2.0

@testable import LongLink
import LongLinkCore
@testable import LongLinkDriver
import LongLinkServer
import LongLinkTesting
@_spi(Loop) import LongLinkTransport
import Testing

/// What the error of a read or write says of a request that had not been sent when it failed.
@Suite struct StreamDeliveryTests {
  /// How a stream is read or written.
  enum Style: CaseIterable {
    case sequence
    case callbacks
    case sendItems
    case exchange
  }

  /// How it ends before its request is sent.
  enum Ending: CaseIterable {
    case itemTimeout
    case cancellation
  }

  /// Sends the requests of a client, whose cancels can be held up.
  private struct Sender: RequestSender {
    final class Sink: RequestSink {
      let sink: LoopBound<any RequestSink>
      /// Runs before a cancel is passed on.
      let delay: (@Sendable () async -> Void)?

      init(_ port: RequestPort, _ delay: (@Sendable () async -> Void)?) {
        sink = port.sink
        self.delay = delay
      }

      func submit(
        _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
        _ completion: consuming Completion
      ) -> RequestID { sink.value.submit(type, body, options, completion) }

      func submit(
        _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
        _ completion: Completion, after delay: Int64
      ) -> RequestID { sink.value.submit(type, body, options, completion, after: delay) }

      var reconnect: ReconnectPolicy { sink.value.reconnect }

      func cancel(_ id: RequestID) {
        guard let delay else { return sink.value.cancel(id) }
        Task(executorPreference: sink.loop) { [sink] in
          await delay()
          await sink.loop.run { sink.value.cancel(id) }
        }
      }

      func state(of id: RequestID) -> RequestState? { sink.value.state(of: id) }
    }

    let client: LongLinkClient
    let senderPort: SenderPort

    /// On the loop of the client.
    init(_ client: LongLinkClient, delay: (@Sendable () async -> Void)?) {
      self.client = client
      senderPort = SenderPort(RequestPort(Sink(client.port, delay), on: client.loop))
    }
  }

  /// Types 20, 21 and 22 read and write nothing; 23 responds with the items that it has read.
  private static func routes(_ server: LongLinkServer) {
    server.routeBasics()
    for (type, shape): (MessageType, StreamShape) in [
      (20, .responseItems), (21, .requestItems), (22, [.requestItems, .responseItems]),
    ] {
      server.routeStream(type, shape) { request, _, _ in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return []
      }
    }
    server.routeStream(23, .requestItems) { _, items, _ in
      var read: [UInt8] = []
      for try await item in items { read += item }
      return read
    }
  }

  private static func run(
    _ style: Style, over sender: Sender, _ options: StreamOptions
  ) async throws {
    switch style {
    case .sequence:
      for try await _ in sender.stream(20, [], options: options) {}
    case .callbacks:
      let outcome: Result<[UInt8], LongLinkError> = await withCheckedContinuation { waiter in
        sender.stream(20, [], options: options, on: .connectionLoop, onItem: { _ in }) {
          waiter.resume(returning: $0)
        }
      }
      _ = try outcome.get()
    case .sendItems:
      _ = try await sender.sendItems(21, [], options: options) { try await $0.write([1]) }
    case .exchange:
      _ = try await sender.exchange(22, [], options: options) { items, _ in
        for try await _ in items {}
      }
    }
  }

  @Test(arguments: Style.allCases, [false, true])
  func `a request that is sent before it is withdrawn is not called unsent`(
    style: Style, isSent: Bool
  ) async throws {
    for ending in Ending.allCases where style != .callbacks || ending == .itemTimeout {
      try await Stage.serving(Self.routes, server: { $0.limits.maxInFlight = 1 }) {
        stage, server, client in
        try await client.connect()
        // It takes the only place.
        let first = try await stage.hang(client, on: server)
        // The place is free, and the stream is sent, before its cancel takes effect.
        let delay: @Sendable () async -> Void = {
          first.cancel()
          try? await stage.until { await server.counters().connections.handled == 2 }
        }
        let sender = Sender(client, delay: isSent ? delay : nil)
        let options = StreamOptions(itemTimeout: ending == .itemTimeout ? .seconds(1) : nil)
        let stream = stage.spawn { try await Self.run(style, over: sender, options) }
        if ending == .cancellation {
          try await stage.clientLoop.sleep(for: .seconds(1))
          stream.cancel()
        }
        let error = try await failure { try await stream.value }
        #expect(error.code == (ending == .itemTimeout ? .deadlineExceeded : .cancelled))
        #expect(error.delivery == (isSent ? .sent : .notSent))
        #expect(await server.counters().connections.handled == (isSent ? 2 : 1))
        first.cancel()
      }
    }
  }

  @Test func `an error that is caught does not call a request unsent that is sent later`()
    async throws
  {
    try await Stage.serving(Self.routes, server: { $0.limits.maxInFlight = 1 }) { _, _, client in
      try await client.connect()
      let first = client.submit(.hang, [])
      let options = StreamOptions(itemTimeout: .seconds(1))
      let response = try await client.sendItems(23, [], options: options) { writer in
        let error = try await failure { try await writer.write([1]) }
        #expect(error.code == .deadlineExceeded && error.delivery == .sent)
        first.cancel()
        try await writer.write([2])
      }
      #expect(response == [2])
    }
  }

  @Test func `a writer that has ended its items does not call a request unsent that is sent`()
    async throws
  {
    try await Stage.serving(Self.routes) { stage, server, client in
      let error = try await failure {
        try await client.sendItems(21, []) { writer in
          writer.finish()
          let error = try await failure { try await writer.write([1]) }
          #expect(error.code == .streamEnded && error.delivery == .sent)
          try await stage.until { await server.counters().requestsRunning == 1 }
          throw error
        }
      }
      #expect(error.code == .streamEnded && error.delivery == .sent)
    }
  }

  @Test func `a request over a peer whose connection has ended can be cancelled`() async throws {
    let peers = Tally<Peer>()
    try await Stage.serving(Self.routes, server: { $0.limits.maxInFlight = 1 }) {
      stage, server, client in
      client.onRequest(.echo) { request in
        peers.add(request.peer)
        return []
      }
      try await client.connect()
      _ = try await server.peers()[0].request(.echo, [])
      let first = client.submit(.hang, [])
      let peer = try #require(peers.elements.first)
      let streams = [StreamOptions(itemTimeout: .seconds(9)), StreamOptions()].map { options in
        stage.spawn { for try await _ in peer.stream(20, [], options: options) {} }
      }
      let waiting = peer.submit(.echo, [], options: RequestOptions(timeout: .seconds(100)))
      try await stage.clientLoop.sleep(for: .seconds(1))
      await server.shutDown(within: .zero)
      #expect(try await failure { try await first.value }.code == .connectionLost)
      #expect(await waiting.state != .completed)
      let late = try await failure { try await streams[0].value }
      #expect(late.code == .deadlineExceeded && late.delivery == .notSent)
      streams[1].cancel()
      let cancelled = try await failure { try await streams[1].value }
      #expect(cancelled.code == .cancelled && cancelled.delivery == .notSent)
    }
  }
}
