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
  @Suite(.serialized, .timeLimit(.minutes(1))) struct GuardTests {
    private func channel(_ flights: FlightTable) throws -> EmbeddedChannel {
      let channel = EmbeddedChannel()
      try channel.pipeline.syncOperations.addHandlers(
        HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()))
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
        let configuration = HTTPConfiguration(idleTimeout: .milliseconds(500))
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
