// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1

/// The bytes of a response's body, on their way from the connection's guard to their reader.
///
/// They bypass async-http-client, which drops unread bytes when the connection ends: here all
/// received bytes come before the end. How the body ended is told by the client's own body, which
/// stays empty.
typealias ResponseBytes = NIOAsyncSequenceProducer<
  ByteBuffer, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, ResponseDemand
>

/// Tells a connection's guard that the reader wants more bytes.
struct ResponseDemand: NIOAsyncSequenceProducerDelegate {
  let produce: @Sendable () -> Void

  func produceMore() { produce() }

  /// Does nothing: the end of the client's own body ends the exchange.
  func didTerminate() {}
}

/// The unread body of one response. While this value exists, the exchange goes on.
struct ResponseBody {
  /// The content encodings that can be read. The first two mean no compression.
  static let encodings = ["", "identity", "gzip", "x-gzip", "deflate"]

  /// The content encoding, in lower case; several are separated by commas.
  let encoding: String
  private let bytes: ResponseBytes?
  private let ending: HTTPClientResponse.Body
  private let flight: HTTPFlight
  private let maxInflation: Int

  init(_ response: HTTPClientResponse, _ flight: HTTPFlight, _ maxInflation: Int) {
    encoding = response.headers["content-encoding"].joined(separator: ",").lowercased()
    bytes = flight.takeBody()
    ending = response.body
    self.flight = flight
    self.maxInflation = maxInflation
  }

  /// Returns the reader. Call it only once.
  func reader() -> ResponseReader {
    let isCompressed = ResponseBody.encodings.dropFirst(2).contains(encoding)
    return ResponseReader(
      bytes, ending, flight, isCompressed ? Inflater(maxInflation: maxInflation) : nil)
  }
}

/// The only reader of a response's body.
final class ResponseReader {
  private var bytes: ResponseBytes.AsyncIterator?
  private let ending: HTTPClientResponse.Body
  private let flight: HTTPFlight
  private let inflater: Inflater?

  init(
    _ bytes: ResponseBytes?, _ ending: HTTPClientResponse.Body, _ flight: HTTPFlight,
    _ inflater: Inflater?
  ) {
    self.bytes = bytes?.makeAsyncIterator()
    self.ending = ending
    self.flight = flight
    self.inflater = inflater
  }

  /// Returns the next bytes, decompressed; nil at the end.
  func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
    while true {
      if let piece = try inflater?.next() { return piece }
      guard let buffer = await bytes?.next(isolation: actor) else { break }
      if let inflater {
        inflater.add(buffer)
      } else if buffer.readableBytes > 0 {
        return Array(buffer.readableBytesView)
      }
    }
    // A cancelled task ends the sequences early.
    try Task.checkCancellation()
    do {
      for try await _ in ending {}
      try Task.checkCancellation()
    } catch HTTPFailure.endedEarly {
      // The body is complete: only the request is not.
    }
    // The client's body also ends without an error if this side has ended the exchange.
    if let failure = flight.failure { throw failure }
    try inflater?.finish()
    return nil
  }
}
#endif
