// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
public import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// The body of a response, in the chunks in which it arrives.
///
/// No more is received than the reader takes, and what fits into the buffers of the connection. It
/// can be read once; `DocumentReader` of LongLinkReaders reads documents from it. When the task of
/// the reader is cancelled, it throws `cancelled`.
public struct HTTPChunks: AsyncSequence, Sendable {
  /// At least one byte.
  public typealias Element = [UInt8]
  /// Every failure is of this type.
  public typealias Failure = LongLinkError

  let source: ChunkSource

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator { Iterator(reader: source.begin()) }

  /// The position of a reader.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: ChunkReader

    /// Returns the next chunk; nil at the end, and after an error.
    ///
    /// Throws `connectionLost` if the connection ends before the body does, `deadlineExceeded`,
    /// `protocolViolation`, `corrupted`, `cancelled`, and `streamEnded` for a second reader.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(LongLinkError) -> [UInt8]? {
      try await reader.next(isolation: actor)
    }

    /// Returns the next chunk, like the other form.
    public mutating func next() async throws(LongLinkError) -> [UInt8]? {
      try await reader.next(isolation: nil)
    }
  }
}

/// A body, and the exchange that it belongs to.
final class ChunkSource: Sendable {
  private let body: Mutex<HTTPClientResponse.Body?>
  private let exchange: ExchangeTail

  init(_ body: HTTPClientResponse.Body?, _ exchange: ExchangeTail) {
    self.body = Mutex(body)
    self.exchange = exchange
  }

  func begin() -> ChunkReader {
    let body = body.withLock(of: self) { $0.take() }
    return ChunkReader(body?.makeAsyncIterator(), exchange)
  }
}

final class ChunkReader {
  private var iterator: HTTPClientResponse.Body.AsyncIterator?
  private let exchange: ExchangeTail
  private var hasBegun = false
  private var hasEnded = false

  init(_ iterator: HTTPClientResponse.Body.AsyncIterator?, _ exchange: ExchangeTail) {
    self.iterator = iterator
    self.exchange = exchange
    if iterator == nil { hasEnded = true }
  }

  func next(isolation actor: isolated (any Actor)?) async throws(LongLinkError) -> [UInt8]? {
    guard !hasEnded else {
      if !hasBegun, iterator == nil {
        hasBegun = true
        throw exchange.failure(.streamEnded, "the body of a response can be read once")
      }
      return nil
    }
    hasBegun = true
    while true {
      let buffer: ByteBuffer?
      do {
        buffer = try await iterator?.next(isolation: actor)
        // The sequence below ends when its task is cancelled.
        if buffer == nil { try Task.checkCancellation() }
      } catch {
        // It is told while the place is still held.
        let failure = exchange.failure(of: error)
        end()
        // The body is whole all the same; what checks a compressed one has not seen its end.
        if (error as? HTTPFailure) == .endedEarly, !exchange.isCompressed { return nil }
        throw failure
      }
      guard let buffer else {
        // The connection below ends the sequence also when this side has ended the exchange.
        let failure = exchange.flight.failure
        end()
        if let failure { throw exchange.failure(of: failure) }
        return nil
      }
      if buffer.readableBytes == 0 { continue }
      exchange.received(buffer.readableBytes)
      return Array(buffer.readableBytesView)
    }
  }

  private func end() {
    hasEnded = true
    iterator = nil
    exchange.end()
  }
}
#endif
