// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploads
internal import Synchronization

/// The unread body of a response, and the exchange that it belongs to.
final class ChunkSource: Sendable {
  private let body: Mutex<ResponseBody?>
  private let exchange: ExchangeTail

  init(_ body: ResponseBody, _ exchange: ExchangeTail) {
    self.body = Mutex(body)
    self.exchange = exchange
  }

  /// The chunks of the body, which can be read once.
  var chunks: BytePieces<LongLinkError> {
    BytePieces {
      let body = self.body.withLock(of: self) { $0.take() }
      let reader = ChunkReader(body?.reader(), self.exchange)
      return BytePieces.Iterator {
        (actor: isolated (any Actor)?) async throws(LongLinkError) -> [UInt8]? in
        try await reader.next(isolation: actor)
      }
    }
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
