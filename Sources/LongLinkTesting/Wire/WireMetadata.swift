// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore

/// The metadata before the payload of a request, response or push.
public struct WireMetadata: Hashable, Sendable {
  /// The time that a request has left, sent in whole milliseconds; nil without a deadline. Zero
  /// means that the deadline has passed.
  public var remaining: Duration?
  /// The priority of a request: larger is more urgent, and 0, the default, is the least urgent.
  public var priority: UInt32
  /// The key that is the same for all attempts of a request; empty for none.
  public var idempotencyKey: [UInt8]
  /// The application's own entries, by name.
  public var entries: [String: String]
  /// The least time to wait before a retry, sent in whole milliseconds; nil for no hint.
  public var retryAfter: Duration?
  /// The first credit for items of the responder, in bytes; nil if the request asks for no items.
  public var credit: UInt32?
  /// Whether the requester will send items after the request.
  public var items: Bool
  /// Whether the responder ended the exchange itself, so that the code and body of the response are
  /// not its handler's.
  public var interrupted: Bool
  /// The space of the client's keys: 16 bytes; empty for none. In a request, the space in which it
  /// is to run once; in a response with 412, the space that holds for the client now.
  public var keySpace: [UInt8]
  /// A time of the clock of the server's store, in milliseconds; 0 for none. In a request that is
  /// to run once, when it was first sent; in a response with 412, the time now.
  public var keyTime: UInt64
  /// Whether the response tells of an earlier request with the same key, without another run of the
  /// handler.
  public var replayed: Bool

  /// Makes metadata. When it is sent, negative times are 0, parts of a millisecond are rounded up,
  /// and a `keySpace` of another length than 16 bytes is left out.
  public init(
    remaining: Duration? = nil,
    priority: UInt32 = 0,
    idempotencyKey: [UInt8] = [],
    entries: [String: String] = [:],
    retryAfter: Duration? = nil,
    credit: UInt32? = nil,
    items: Bool = false,
    interrupted: Bool = false,
    keySpace: [UInt8] = [],
    keyTime: UInt64 = 0,
    replayed: Bool = false
  ) {
    self.remaining = remaining
    self.priority = priority
    self.idempotencyKey = idempotencyKey
    self.entries = entries
    self.retryAfter = retryAfter
    self.credit = credit
    self.items = items
    self.interrupted = interrupted
    self.keySpace = keySpace
    self.keyTime = keyTime
    self.replayed = replayed
  }

  init?(encoded: ArraySlice<UInt8>) {
    guard let metadata = Metadata(wire: encoded) else { return nil }
    self.init(
      remaining: metadata.remaining.map { .milliseconds($0) },
      priority: metadata.priority,
      idempotencyKey: metadata.idempotencyKey,
      entries: Dictionary(
        metadata.entries.map { ($0.key, $0.value) },
        uniquingKeysWith: { _, last in last }
      ),
      retryAfter: metadata.retryAfter == 0 ? nil : .milliseconds(metadata.retryAfter),
      credit: metadata.credit,
      items: metadata.items,
      interrupted: metadata.interrupted,
      keySpace: metadata.keySpace?.bytes ?? [],
      keyTime: metadata.keyTime,
      replayed: metadata.replayed
    )
  }

  /// The encoded block: its length in two bytes, then the metadata.
  var block: [UInt8] {
    let metadata = Metadata(
      remaining: remaining?.wireMilliseconds,
      priority: priority,
      idempotencyKey: idempotencyKey,
      // The encoder sorts them by key.
      entries: entries.map { Metadata.Entry(key: $0.key, value: $0.value) },
      retryAfter: retryAfter?.wireMilliseconds ?? 0,
      credit: credit,
      items: items,
      interrupted: interrupted,
      keySpace: KeySpace(keySpace),
      keyTime: keyTime,
      replayed: replayed
    )
    let encoded = metadata.wireBytes
    precondition(encoded.count <= 0xFFFF, "metadata has at most 65,535 bytes")
    return [UInt8(encoded.count >> 8), UInt8(encoded.count & 0xFF)] + encoded
  }
}
