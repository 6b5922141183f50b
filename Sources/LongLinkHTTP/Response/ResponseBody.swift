// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1

/// The bytes of a response's body, from the guard of its connection to their reader.
///
/// The client below drops what waits for the reader when the connection ends, so they do not go
/// through it. Here all bytes that have arrived come before the end. How the body has ended, the
/// client's own body tells, in which there are no bytes.
typealias ResponseBytes = NIOAsyncSequenceProducer<
  ByteBuffer, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, ResponseDemand
>

/// Tells a connection's guard that the reader wants more.
struct ResponseDemand: NIOAsyncSequenceProducerDelegate {
  let produce: @Sendable () -> Void

  func produceMore() { produce() }

  /// The end of the client's own body ends the exchange.
  func didTerminate() {}
}

/// The body of one response. While it is kept, its exchange goes on.
struct ResponseBody {
  /// The encodings that are read; the first two are none.
  static let encodings = ["", "identity", "gzip", "x-gzip", "deflate"]

  /// The encoding, in lower case; several are separated by commas.
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

  /// Begins to read. It is called once.
  func reader() -> ResponseReader {
    let isCompressed = ResponseBody.encodings.dropFirst(2).contains(encoding)
    return ResponseReader(
      bytes, ending, flight, isCompressed ? Inflater(maxInflation: maxInflation) : nil)
  }
}

/// The one reader of a body.
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
    // The sequences end when the task is cancelled.
    try Task.checkCancellation()
    do {
      for try await _ in ending {}
      try Task.checkCancellation()
    } catch HTTPFailure.endedEarly {
      // The body is whole all the same.
    }
    // The client ends its body also when this side has ended the exchange.
    if let failure = flight.failure { throw failure }
    try inflater?.finish()
    return nil
  }
}
#endif
