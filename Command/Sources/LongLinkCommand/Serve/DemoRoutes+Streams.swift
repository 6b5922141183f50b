// SPDX-License-Identifier: Apache-2.0

import LongLinkCommandSupport
import LongLinkDemoMessages
import LongLinkServer

/// The routes whose exchanges carry items.
extension DemoRoutes {
  static let count: MessageType = 6
  static let sum: MessageType = 7
  static let relay: MessageType = 8
  static let feed: MessageType = 9

  /// The most bytes of padding that all items of Count may hold together.
  private static let mostPadding = 32 * 1_048_576

  static func installStreams(on server: LongLinkServer) {
    let maxBody = server.configuration.limits.maxBody
    let paddings = Allowance(of: mostPadding)
    server.routeStream(count, .responseItems) { request, _, writer in
      let message = try request.decoded(as: CountRequest.self)
      let failure = try failure(of: message)
      let size = Int(message.itemBytes)
      guard size <= maxBody else { throw tooLarge("item_bytes is over \(maxBody)") }
      guard paddings.take(size) else {
        throw Rejection(.overloaded, "too many large items", retryAfter: .seconds(1))
      }
      defer { paddings.giveBack(size) }
      let last = Tick(
        number: UInt64(message.count), padding: [UInt8](repeating: 0, count: size))
      guard try encodedSize(of: last) <= maxBody else {
        throw tooLarge("an item is over \(maxBody) bytes")
      }
      try await count(message, last.padding, request, to: writer)
      if let failure { throw failure }
      return EmptyBody()
    }
    server.routeStream(sum, .requestItems) { request, items, _ in
      _ = try request.decoded(as: EmptyBody.self)
      return try await sum(of: items)
    }
    server.routeStream(relay, [.requestItems, .responseItems]) { request, items, writer in
      _ = try request.decoded(as: EmptyBody.self)
      for try await item in items { try await write(item, to: writer) }
      return EmptyBody()
    }
    server.routeStream(feed, .responseItems) { request, _, writer in
      let message = try request.decoded(as: FeedRequest.self)
      guard let format = FeedDocument.Format(rawValue: message.format) else {
        throw Rejection(.malformed, "format must be xml or json")
      }
      try await feed(FeedDocument(format, message), message, request, to: writer)
      return EmptyBody()
    }
  }

  /// Writes an item. One that the client does not accept ends the stream with 400.
  private static func write(
    _ item: some BodyEncodable & Sendable, to writer: ItemWriter<[UInt8]>
  ) async throws {
    do {
      try await writer.write(item)
    } catch let error where error.code == .tooLarge {
      throw tooLarge(error.detail)
    }
  }

  private static func encodedSize(of item: some BodyEncodable) throws -> Int {
    try item.encodedByteCount
  }

  private static func tooLarge(_ detail: String) -> Rejection {
    Rejection(.malformed, detail)
  }
}

// MARK: - Count

extension DemoRoutes {
  /// The errors of wire.md, section 14.
  private static let errors: [ResponseCode] = [
    .malformed, .unauthenticated, .forbidden, .unknownType, .deadlinePassed, .conflict, .tooLarge,
    .overloaded, .cancelled, .failed, .draining,
  ]

  /// The error that ends the stream; nil if none does.
  private static func failure(of request: CountRequest) throws -> Rejection? {
    guard request.failAfter > 0 else { return nil }
    guard let code = ResponseCode(rawValue: request.failCode),
      code.isApplication || errors.contains(code)
    else {
      throw Rejection(.malformed, "fail_code must be an error, or from 1000 to 8388607")
    }
    guard request.failAfter <= request.count else { return nil }
    return Rejection(code, request.failDetail)
  }

  /// Writes the items that the request asks for, up to its error.
  private static func count(
    _ message: CountRequest, _ padding: [UInt8], _ request: InboundRequest,
    to writer: ItemWriter<[UInt8]>
  ) async throws {
    let fails = message.failAfter > 0 && message.failAfter <= message.count
    let count = UInt64(fails ? message.failAfter : message.count)
    var number = UInt64(message.after)
    while number < count {
      number += 1
      try await write(Tick(number: number, padding: padding), to: writer)
      if number < count {
        try await pause(message.intervalMilliseconds, after: number, of: request)
      }
    }
  }

  /// Waits for an interval. Without one, lets other tasks of the loop run every so often.
  private static func pause(
    _ milliseconds: UInt32, after number: UInt64, of request: InboundRequest
  ) async throws {
    if milliseconds > 0 {
      try await request.clock.sleep(for: .milliseconds(Int64(milliseconds)))
    } else if number.isMultiple(of: 64) {
      await Task.yield()
    }
  }
}

// MARK: - Sum

extension DemoRoutes {
  private static func sum(of items: Items<[UInt8]>) async throws -> SumReply {
    var reply = SumReply(adler32: 1)
    for try await item in items {
      reply.items += 1
      reply.bytes += UInt64(item.count)
      // The span is used within the call alone.
      reply.adler32 = unsafe Adler32.checksum(of: item.span.bytes, continuing: reply.adler32)
    }
    return reply
  }
}

// MARK: - Feed

extension DemoRoutes {
  /// No multiple of what an element or a character of the document takes.
  private static let pieceSize = 17

  /// Writes a document in pieces; the last one has what is left.
  private static func feed(
    _ document: FeedDocument, _ message: FeedRequest, _ request: InboundRequest,
    to writer: ItemWriter<[UInt8]>
  ) async throws {
    var document = document
    var rest: [UInt8] = []
    var number: UInt64 = 0
    while let text = document.next() {
      number += 1
      rest += text.utf8
      while rest.count >= pieceSize {
        try await write(Array(rest.prefix(pieceSize)), to: writer)
        rest.removeFirst(pieceSize)
      }
      if !document.isAtEnd {
        try await pause(message.intervalMilliseconds, after: number, of: request)
      }
    }
    if !rest.isEmpty { try await write(rest, to: writer) }
  }
}
