// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// The body of a response, in the chunks in which it arrives.
///
/// The service receives no more than the reader takes and the connection's buffers hold. The body
/// can be read once; `DocumentReader` of LongLinkReaders reads documents from it. When the task of
/// the reader is cancelled, reading throws `cancelled`.
public struct HTTPChunks: AsyncSequence, Sendable {
  let source: ChunkSource

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator { Iterator(reader: source.begin()) }

  /// A reader of the body's chunks.
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

    /// Returns the next chunk, like `next(isolation:)`.
    public mutating func next() async throws(LongLinkError) -> [UInt8]? {
      try await reader.next(isolation: nil)
    }
  }
}

/// The unread body of a response, and the exchange that it belongs to.
final class ChunkSource: Sendable {
  private let body: Mutex<ResponseBody?>
  private let exchange: ExchangeTail

  init(_ body: ResponseBody, _ exchange: ExchangeTail) {
    self.body = Mutex(body)
    self.exchange = exchange
  }

  func begin() -> ChunkReader {
    ChunkReader(body.withLock(of: self) { $0.take() }?.reader(), exchange)
  }
}

final class ChunkReader {
  private var reader: ResponseReader?
  private let exchange: ExchangeTail
  /// Whether the body was given to another reader before.
  private var isSecond: Bool

  init(_ reader: ResponseReader?, _ exchange: ExchangeTail) {
    self.reader = reader
    self.exchange = exchange
    isSecond = reader == nil
  }

  func next(isolation actor: isolated (any Actor)?) async throws(LongLinkError) -> [UInt8]? {
    guard let reader else {
      guard isSecond else { return nil }
      isSecond = false
      throw exchange.failure(.streamEnded, "the body of a response can be read once")
    }
    do {
      if let bytes = try await reader.next(isolation: actor) {
        exchange.received(bytes.count)
        return bytes
      }
    } catch {
      // Made while the exchange still has its place, which knows whether the service has closed.
      let failure = exchange.failure(of: error)
      end()
      throw failure
    }
    end()
    return nil
  }

  private func end() {
    reader = nil
    exchange.end()
  }
}
#endif
