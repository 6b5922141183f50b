// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTransport
import Testing

/// A log in which a number appears each 100 ms, from 1: any server sends those after the one that
/// it is asked for, as soon as they are there.
final class NumberLog: Sendable {
  /// The numbers after which streams were opened.
  let opens = Tally<UInt64>()

  static let type: MessageType = 70

  func route(on server: LongLinkServer) {
    server.routeStream(Self.type, .responseItems) { [opens] request, _, writer in
      var number = Self.number(request.body)
      opens.add(number)
      while true {
        number += 1
        try await request.clock.sleep(until: LinkInstant(nanoseconds: Int64(number) * 100_000_000))
        try await writer.write(Self.bytes(number))
      }
      return []
    }
  }

  static func bytes(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  static func number(_ bytes: [UInt8]?) -> UInt64 {
    (bytes ?? []).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The numbers on a client, from the last one that was taken.
  static func stream(
    _ client: LongLinkClient, options: StreamOptions = StreamOptions(),
    retryingWhen: @escaping @Sendable (LongLinkError) -> Bool = { _ in false }
  ) -> ResumingStream<[UInt8]> {
    client.stream(
      type, options: options, resuming: { last in bytes(number(last)) }, retryingWhen: retryingWhen)
  }
}

/// Takes the numbers of a log, which have to follow one another, and what comes between them.
final class NumberReader {
  private var events: ResumingStream<StreamEvent<[UInt8]>>
  private(set) var last: UInt64 = 0
  /// What has cut the stream off, each time that it was resumed; nil for a move.
  private(set) var losses: [LongLinkError?] = []
  private(set) var attempts = 0

  init(_ stream: ResumingStream<[UInt8]>) {
    events = stream.events
  }

  /// Reads up to a number. None may be missing, and none may come twice.
  func read(to end: UInt64) async throws {
    while last < end {
      switch try await events.next() {
      case .item(let item):
        let number = NumberLog.number(item)
        try #require(number == last + 1)
        last = number
      case .resumed(let error, let count):
        losses.append(error)
        attempts += count
      case nil: try #require(Bool(false), "the items have ended")
      }
    }
  }
}
