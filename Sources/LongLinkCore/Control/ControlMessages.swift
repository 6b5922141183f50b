// SPDX-License-Identifier: Apache-2.0

/// The client's first message. A field that is 0 or empty means its default.
package struct Hello: Equatable, Sendable {
  package var version: UInt32
  /// The features as bits; see `Features`.
  package var features: UInt64
  /// The largest body that the client accepts, in bytes.
  package var maxBody: UInt32
  package var maxInFlight: UInt32
  /// The heartbeat's interval in milliseconds, like its timeout.
  package var heartbeatInterval: UInt32
  package var heartbeatTimeout: UInt32
  package var credential: [UInt8]
  package var name: String
  /// The first credit of each request with items that the client receives, in bytes.
  package var streamCredit: UInt32
  /// The client's identity on all its connections; nil for a client of this connection alone.
  package var clientID: ClientID?

  package init(
    version: UInt32 = 0,
    features: UInt64 = 0,
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: UInt32 = 0,
    heartbeatTimeout: UInt32 = 0,
    credential: [UInt8] = [],
    name: String = "",
    streamCredit: UInt32 = 0,
    clientID: ClientID? = nil
  ) {
    self.version = version
    self.features = features
    self.maxBody = maxBody
    self.maxInFlight = maxInFlight
    self.heartbeatInterval = heartbeatInterval
    self.heartbeatTimeout = heartbeatTimeout
    self.credential = credential
    self.name = name
    self.streamCredit = streamCredit
    self.clientID = clientID
  }
}

/// The server's reply to a hello. A field that is 0 or empty means its default.
package struct Welcome: Equatable, Sendable {
  package var version: UInt32
  /// The features that both sides support, as bits.
  package var features: UInt64
  /// The largest body that the server accepts, in bytes.
  package var maxBody: UInt32
  package var maxInFlight: UInt32
  /// The heartbeat's interval in milliseconds, like its timeout; neither side uses a longer
  /// interval.
  package var heartbeatInterval: UInt32
  package var heartbeatTimeout: UInt32
  package var name: String
  /// The first credit of each request with items that the server receives, in bytes.
  package var streamCredit: UInt32
  /// How long the client's credential is accepted, in milliseconds.
  package var credentialExpires: UInt32
  /// The key space of the client; nil if the server keeps none of its keys.
  package var keySpace: KeySpace?
  /// For how long the server keeps the records of the client, in milliseconds.
  package var keyRetention: UInt32
  /// The time of the clock of the server's key store, in milliseconds.
  package var keyTime: UInt64

  package init(
    version: UInt32 = 0,
    features: UInt64 = 0,
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: UInt32 = 0,
    heartbeatTimeout: UInt32 = 0,
    name: String = "",
    streamCredit: UInt32 = 0,
    credentialExpires: UInt32 = 0,
    keySpace: KeySpace? = nil,
    keyRetention: UInt32 = 0,
    keyTime: UInt64 = 0
  ) {
    self.version = version
    self.features = features
    self.maxBody = maxBody
    self.maxInFlight = maxInFlight
    self.heartbeatInterval = heartbeatInterval
    self.heartbeatTimeout = heartbeatTimeout
    self.name = name
    self.streamCredit = streamCredit
    self.credentialExpires = credentialExpires
    self.keySpace = keySpace
    self.keyRetention = keyRetention
    self.keyTime = keyTime
  }
}

/// States that its sender accepts no new requests on this connection.
package struct GoAway: Equatable, Sendable {
  package var code: UInt32
  package var reason: String
  package var requestsAccepted: UInt64
  /// The time over which reconnects spread, in milliseconds, like `retryAfter`; 0 for no hint.
  package var spread: UInt32
  package var retryAfter: UInt32
  package var alternatives: [String]

  package init(
    code: UInt32 = 0,
    reason: String = "",
    requestsAccepted: UInt64 = 0,
    spread: UInt32 = 0,
    retryAfter: UInt32 = 0,
    alternatives: [String] = []
  ) {
    self.code = code
    self.reason = reason
    self.requestsAccepted = requestsAccepted
    self.spread = spread
    self.retryAfter = retryAfter
    self.alternatives = alternatives
  }
}

/// The metadata before the payload of a frame with the metadata flag.
package struct Metadata: Equatable, Sendable {
  /// The remaining time in milliseconds; 0 if the deadline has passed, nil if there is none.
  package var remaining: UInt32?
  package var priority: UInt32
  package var idempotencyKey: [UInt8]
  /// The entries, in the order given or read; the last one with a key counts.
  package var entries: [Entry]
  /// The least time before a retry, in milliseconds; 0 for no hint.
  package var retryAfter: UInt32
  /// The first credit for items of the responder, in bytes; nil if it is to send none.
  package var credit: UInt32?
  /// Whether items of the requester follow.
  package var items: Bool
  /// Whether the responder ended the exchange itself: the response is not its handler's.
  package var interrupted: Bool
  /// The key space of a request that runs once; in a response 412, the client's own now; or nil.
  package var keySpace: KeySpace?
  /// Of a request that runs once, when it was first sent, by the clock of the key store, in
  /// milliseconds; of a response 412, that clock now. 0 for none.
  package var keyTime: UInt64
  /// Whether the response is about an earlier request with the same idempotency key.
  package var replayed: Bool

  package init(
    remaining: UInt32? = nil,
    priority: UInt32 = 0,
    idempotencyKey: [UInt8] = [],
    entries: [Entry] = [],
    retryAfter: UInt32 = 0,
    credit: UInt32? = nil,
    items: Bool = false,
    interrupted: Bool = false,
    keySpace: KeySpace? = nil,
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
}

extension Metadata {
  /// A key and its value.
  package struct Entry: Equatable, Sendable {
    package var key: String
    package var value: String

    package init(key: String, value: String) {
      self.key = key
      self.value = value
    }
  }

  /// The entries in the order of encoding: sorted by the bytes of the keys, the last of each key.
  package var canonicalEntries: [Entry] {
    var result: [Entry] = []
    result.reserveCapacity(entries.count)
    let sorted = entries.enumerated().sorted { first, second in
      if first.element.key.utf8.elementsEqual(second.element.key.utf8) {
        return first.offset < second.offset
      }
      return first.element.key.utf8.lexicographicallyPrecedes(second.element.key.utf8)
    }
    for (_, entry) in sorted {
      if let last = result.last, last.key.utf8.elementsEqual(entry.key.utf8) {
        result.removeLast()
      }
      result.append(entry)
    }
    return result
  }
}
