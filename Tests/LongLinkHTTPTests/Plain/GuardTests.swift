// SPDX-License-Identifier: Apache-2.0

#if HTTP
@testable import LongLinkHTTP
import LongLinkUploads
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization
import Testing

extension HTTPTests {
  /// What the guard of a connection lets through, and what it ends.
  @Suite(.serialized, .timeLimit(.minutes(5))) struct GuardTests {
    private func channel(_ flights: FlightTable) throws -> EmbeddedChannel {
      let channel = EmbeddedChannel()
      try channel.pipeline.syncOperations.addHandlers(
        HTTPRequestEncoder(),
        ByteToMessageHandler(
          HTTPResponseDecoder(informationalResponseStrategy: .forward)))
      try HTTPGuard.install(on: channel, over: .http1, flights, idle: .seconds(1)).wait()
      try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
      return channel
    }

    private func head(_ number: UInt64) -> HTTPClientRequestPart {
      .head(
        HTTPRequestHead(
          version: .http1_1, method: .GET, uri: "/", headers: [HTTPFlight.header: "\(number)"]))
    }

    @Test(arguments: [true, false])
    func `a head whose exchange has ended is not written`(isTaken: Bool) throws {
      let flights = FlightTable()
      let flight = flights.add(progress: nil)
      if isTaken { _ = flights.take(flight.number) } else { flight.withdraw() }
      let channel = try channel(flights)
      channel.write(head(flight.number), promise: nil)
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
      channel.embeddedEventLoop.run()
      #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
      #expect(!channel.isActive && !flight.isSent)
    }

    @Test func `a head whose exchange goes on is written without its number`() throws {
      let flights = FlightTable()
      let flight = flights.add(progress: nil)
      let channel = try channel(flights)
      channel.write(head(flight.number), promise: nil)
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
      let bytes = try #require(try channel.readOutbound(as: ByteBuffer.self))
      #expect(String(buffer: bytes) == "GET / HTTP/1.1\r\n\r\n" && flight.isSent)
      // Withdrawn too late.
      flight.withdraw()
      #expect(flight.isSent && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .seconds(2))
      _ = try? channel.finish()
    }

    /// A channel whose request is on its way, and the flight of it. The guard allows a silence of
    /// one second.
    private func sent(
      deadline: NIODeadline = .distantFuture
    ) throws -> (channel: EmbeddedChannel, flight: HTTPFlight) {
      let flights = FlightTable()
      let flight = flights.add(deadline: deadline, progress: nil)
      let channel = try channel(flights)
      channel.write(head(flight.number), promise: nil)
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
      channel.read()
      return (channel, flight)
    }

    /// Receives a text each tenth of a second until the channel ends. Returns how many there were.
    private func drip(_ text: String, into channel: EmbeddedChannel) -> Int {
      for count in 1...100 {
        // The error that ends it is the flight's.
        _ = try? channel.writeInbound(ByteBuffer(string: text))
        channel.read()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
        if !channel.isActive { return count }
      }
      return 0
    }

    @Test(arguments: [("HTTP/1.1 200 OK\r\nX: ", "v"), ("", "HTTP/1.1 100 Continue\r\n\r\n")])
    func `a head that drips, and interim responses, are silence`(
      beginning: String, drop: String
    ) throws {
      let (channel, flight) = try sent()
      try channel.writeInbound(ByteBuffer(string: beginning))
      #expect(drip(drop, into: channel) == 10 && flight.failure == .silence)
    }

    @Test(arguments: ["1;x", "0\r\nX: "])
    func `what is in a body and is none of its content is silence`(beginning: String) throws {
      let (channel, flight) = try sent()
      try channel.writeInbound(
        ByteBuffer(string: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(beginning)"))
      channel.read()
      #expect(drip("x", into: channel) == 10 && flight.failure == .silence)
    }

    @Test func `so is a part of a body without a byte`() throws {
      let (channel, flight) = try sent()
      try channel.writeInbound(
        ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
      channel.read()
      let decoder = try channel.pipeline.syncOperations.context(
        handlerType: ByteToMessageHandler<HTTPResponseDecoder>.self)
      for _ in 0..<10 {
        #expect(channel.isActive)
        decoder.fireChannelRead(NIOAny(HTTPClientResponsePart.body(ByteBuffer())))
        decoder.fireChannelReadComplete()
        channel.read()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
      }
      #expect(!channel.isActive && flight.failure == .silence)
    }

    @Test func `the time before a pause of the reader counts, and the pause does not`() throws {
      let (channel, flight) = try sent()
      let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      try channel.writeInbound(ByteBuffer(string: head))
      channel.read()
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(600))
      try channel.writeInbound(ByteBuffer(string: "1;x"))
      channel.embeddedEventLoop.advanceTime(by: .minutes(10))
      channel.read()
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(300))
      #expect(channel.isActive && flight.failure == nil)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
      #expect(!channel.isActive && flight.failure == .silence)
    }

    @Test func `a body that drips ends by the deadline`() throws {
      let (channel, flight) = try sent(deadline: .uptimeNanoseconds(3_000_000_000))
      try channel.writeInbound(
        ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"))
      #expect(drip("a", into: channel) == 30 && flight.failure == .deadline)
    }

    @Test func `a slow reader is not taken for a silent server`() throws {
      let response = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
      let (channel, flight) = try sent()
      try channel.writeInbound(response)
      // The reader has not taken this when the next read is asked for.
      try channel.writeInbound(ByteBuffer(string: "abc"))
      channel.read()
      channel.embeddedEventLoop.advanceTime(by: .minutes(10))
      #expect(channel.isActive && flight.failure == nil)
      // A reader that waits hears of silence.
      let (silent, other) = try sent()
      try silent.writeInbound(response)
      silent.read()
      silent.embeddedEventLoop.advanceTime(by: .seconds(1))
      #expect(!silent.isActive && other.failure == .silence)
      _ = try? channel.finish()
    }

    /// A body without end, whose readers are counted.
    private func endless(_ alive: Counter) -> HTTPBody {
      .content(
        .sequence { _ in EndlessBytes(alive: alive) }, contentType: "a/b")
    }

    @Test(arguments: ["413 Content Too Large", "401 Unauthorized", "200 OK"])
    func `a response before the request's end leaves nobody waiting`(status: String) async throws {
      let alive = Counter()
      try await RawServer.run { connection in
        _ = try await connection.request(withBody: false)
        try await connection.send(http(status))
        // Nothing more is read.
        try await Task.sleep(for: .seconds(600))
      } body: { server in
        let configuration = HTTPConfiguration(idleTimeout: .seconds(2))
        try await withService(configuration) { service in
          var request = HTTPRequest(.post, server.url())
          request.body = endless(alive)
          if status.hasPrefix("200") {
            try await service.succeed(request)
          } else {
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .rejected && error.delivery == .answered, "\(error)")
          }
          try await until { alive.value.load(ordering: .relaxed) == 0 }
        }
      }
    }
  }
}

/// How many objects of a kind there are.
final class Counter: Sendable {
  let value = Atomic(0)
}

/// Bytes without end.
private struct EndlessBytes: AsyncSequence {
  let alive: Counter

  final class Witness {
    let alive: Counter

    init(_ alive: Counter) {
      self.alive = alive
      alive.value.add(1, ordering: .relaxed)
    }

    deinit { alive.value.subtract(1, ordering: .relaxed) }
  }

  struct Iterator: AsyncIteratorProtocol {
    let witness: Witness

    mutating func next() async -> [UInt8]? { [UInt8](repeating: 1, count: 65_536) }
  }

  func makeAsyncIterator() -> Iterator { Iterator(witness: Witness(alive)) }
}
#endif
