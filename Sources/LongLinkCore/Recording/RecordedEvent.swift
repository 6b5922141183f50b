// SPDX-License-Identifier: Apache-2.0

/// What a recorder notes of a connection: what its core was told, and what the core decided.
/// `Protocols/recording.md` says what each one means; the raw values are those of the file.
@usableFromInline package enum RecordedEvent: UInt8, CaseIterable, Sendable {
  // About the whole recording
  case names = 1
  // Bytes and time
  case began = 2
  case connected = 3
  case received = 4
  case receivedPart = 5
  case resumedReading = 6
  case ended = 7
  case failed = 8
  case elapsed = 9
  case wrote = 10
  // How often a message or an effect was taken
  case taken = 11
  // Requests and pushes of this side
  case request = 12
  case push = 13
  case encodedPush = 14
  case cancel = 15
  case deadlineMissed = 16
  case abandonResponse = 17
  case rejectStray = 18
  // Requests of the peer
  case setPriority = 19
  case respond = 20
  case respondWith = 21
  case handlerReturned = 22
  // Items
  case sendItem = 23
  case endItems = 24
  case tookItems = 25
  case lentItems = 26
  case tookUnread = 27
  // Heartbeat and rates
  case ping = 28
  case probe = 29
  case setPace = 30
  case slowed = 31
  case unslowed = 32
  // Identity
  case takeCredential = 33
  case takeClientID = 34
  case admit = 35
  case turnAway = 36
  case renew = 37
  case learn = 38
  // Ends, and what holds reading
  case goAway = 39
  case shutDown = 40
  case evict = 41
  case close = 42
  case leave = 43
  case handlersHadTurn = 44
  case handlersTurnEnds = 45
  case mostUnread = 46
  // What the core decided
  case effect = 47
  // More parts of frames, of a read or a write that has too many for one record
  case receivedMore = 48
  case wroteMore = 49
  case streamRequest = 50

  /// How many numbers follow the head of the event.
  package var numbers: Int {
    switch self {
    case .names, .connected, .receivedPart, .resumedReading, .ping, .slowed, .takeCredential,
      .takeClientID, .evict, .handlersHadTurn, .handlersTurnEnds, .receivedMore, .wroteMore,
      .leave:
      0
    case .received, .ended, .elapsed, .wrote, .taken, .deadlineMissed, .abandonResponse,
      .handlerReturned, .endItems, .lentItems, .probe, .setPace, .unslowed, .turnAway, .renew,
      .shutDown, .mostUnread:
      1
    case .failed, .encodedPush, .rejectStray, .setPriority, .tookItems, .tookUnread, .close,
      .respond, .push, .learn, .sendItem:
      2
    case .request, .cancel, .admit, .goAway: 3
    case .effect, .respondWith: 4
    case .streamRequest: 5
    case .began: RecordedSettings.numbers
    }
  }

  /// Whether the record also has parts of frames.
  package var hasParts: Bool {
    switch self {
    case .received, .receivedMore, .wrote, .wroteMore: true
    default: false
    }
  }

  /// The name in a timeline.
  package var name: String { "\(self)" }
}

/// What an event says besides its other numbers, as bits.
@usableFromInline package struct RecordedFlags: OptionSet, Sendable {
  @usableFromInline package let rawValue: UInt32

  @usableFromInline package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// The body that was to be encoded has failed.
  package static let failed = RecordedFlags(rawValue: 1)
  /// The request sends items.
  package static let sendsItems = RecordedFlags(rawValue: 2)
  package static let isRefused = RecordedFlags(rawValue: 4)
  package static let isInterrupting = RecordedFlags(rawValue: 8)
  package static let hasOwnCode = RecordedFlags(rawValue: 16)
  package static let isNotifying = RecordedFlags(rawValue: 32)
}

/// The numbers of events that have several values in one.
@usableFromInline package enum RecordedNumber {
  /// Two numbers of 32 bits.
  @inlinable @inline(__always)
  package static func pair(_ low: UInt32, _ high: UInt32) -> UInt64 {
    UInt64(low) | UInt64(high) << 32
  }

  /// The size of a body, in bytes, below 2^40; and that of its metadata plus 1, 0 for none.
  @inlinable @inline(__always)
  package static func sizes(_ count: Int, metadata: Int?) -> UInt64 {
    UInt64(truncatingIfNeeded: count) & 0xFF_FFFF_FFFF
      | UInt64(truncatingIfNeeded: (metadata ?? -1) + 1) << 40
  }

  /// The values of `pair`.
  package static func pair(_ number: UInt64) -> (low: UInt32, high: UInt32) {
    (UInt32(truncatingIfNeeded: number), UInt32(truncatingIfNeeded: number >> 32))
  }

  /// The values of `sizes`.
  package static func sizes(_ number: UInt64) -> (count: Int, metadata: Int?) {
    let metadata = Int(number >> 40)
    return (Int(number & 0xFF_FFFF_FFFF), metadata == 0 ? nil : metadata - 1)
  }
}
