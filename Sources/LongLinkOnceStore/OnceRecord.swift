// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A record in memory. It is small, because there may be very many.
struct OnceRecord {
  enum State: UInt8 {
    /// It holds no record; `next` is the next free one.
    case free
    case running
    case answered
    case notKept
    case unknown
  }

  /// A key of 16 bytes, as clients make them, in place; other keys are arrays.
  enum Key: Sendable {
    case short(UInt64, UInt64)
    case long([UInt8])

    init(_ bytes: [UInt8]) {
      guard bytes.count == 16 else {
        self = .long(bytes)
        return
      }
      self = .short(UInt64(bigEndian: bytes, at: 0), UInt64(bigEndian: bytes, at: 8))
    }

    static func == (lhs: Key, rhs: Key) -> Bool {
      switch (lhs, rhs) {
      case (.short(let a, let b), .short(let c, let d)): a == c && b == d
      case (.long(let a), .long(let b)): a == b
      default: false
      }
    }

    /// The bytes that it takes beside the record.
    var extraBytes: Int {
      if case .long(let bytes) = self { OnceRecord.arrayBytes(bytes.count) } else { 0 }
    }
  }

  // The small fields are where the compiler would leave gaps.
  var key = Key.short(0, 0)
  var state = State.free
  /// Whether the client's time was ahead.
  var isAhead = false
  var runs: UInt16 = 0
  /// The number of its scope.
  var scope = OnceScopes.none
  var hash: UInt32 = 0
  /// The neighbours in its list of expiries.
  var previous = OnceRecords.none
  var next = OnceRecords.none
  var type: UInt32 = 0
  var code: UInt32 = 0
  var answer: [UInt8] = []
  var fingerprint = OnceFingerprint(0, 0, 0, 0)
  var number: Int64 = 0
  var expiry: Int64 = 0

  /// The bytes of a record without a long key and an answer. Its place in the table takes up to 32,
  /// because the table has two to four places of 8 bytes for each record.
  static let ownBytes = MemoryLayout<OnceRecord>.stride + 32

  /// The bytes of an array, with what the allocator adds; an empty one takes none.
  static func arrayBytes(_ count: Int) -> Int { count == 0 ? 0 : (count + 32 + 8 + 15) / 16 * 16 }

  var byteCount: Int {
    OnceRecord.ownBytes + key.extraBytes + OnceRecord.arrayBytes(answer.count)
  }

  /// A record that holds nothing.
  init() {}

  /// A record that is running, of a first begin.
  init(_ attempt: OnceAttempt, _ place: OncePlace, at now: Int64) {
    key = place.key
    type = place.type
    hash = place.hash
    runs = 1
    begins(attempt, at: now)
  }

  /// Makes the record one that is running, since a begin.
  mutating func begins(_ attempt: OnceAttempt, at now: Int64) {
    fingerprint = attempt.fingerprint
    number = attempt.token.number
    expiry = attempt.expiry(at: now)
    isAhead = attempt.keyTime > now
    state = .running
  }

  /// What a begin finds. The record is neither free nor expired.
  func finding(of attempt: OnceAttempt) -> OnceFinding {
    guard fingerprint == attempt.fingerprint else { return .otherFingerprint }
    switch state {
    case .running, .free: return .running
    case .answered: return .answered(OnceAnswer(code: ResponseCode(wire: code), body: answer))
    case .notKept: return .notKept
    case .unknown: return .unknown
    }
  }
}

/// Where a record is to be found: what it is compared with, and the hash of that.
package struct OncePlace: Hashable, Sendable {
  let scope: [UInt8]
  let type: UInt32
  let key: OnceRecord.Key
  let hash: UInt32

  package init(_ token: OnceToken) { self.init(token, scopeHash: Self.hash(of: token.scope)) }

  /// Makes a place for a caller that keeps the hash of its scope.
  package init(_ token: OnceToken, scopeHash: Int) {
    scope = token.scope.bytes
    type = token.type.rawValue
    key = OnceRecord.Key(token.key)
    // Seeded by the process, so that nobody can choose keys that collide.
    var hasher = Hasher()
    hasher.combine(scopeHash)
    hasher.combine(type)
    switch key {
    case .short(let first, let second):
      hasher.combine(first)
      hasher.combine(second)
    case .long(let bytes): hasher.combine(bytes)
    }
    hash = UInt32(truncatingIfNeeded: hasher.finalize())
  }

  package static func hash(of scope: OnceScope) -> Int {
    var hasher = Hasher()
    unsafe scope.bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  package static func == (lhs: OncePlace, rhs: OncePlace) -> Bool {
    lhs.hash == rhs.hash && lhs.type == rhs.type && lhs.key == rhs.key && lhs.scope == rhs.scope
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// Whether it is the place of a record, if the record's scope is this one.
  func isThat(of record: borrowing OnceRecord) -> Bool {
    record.hash == hash && record.type == type && record.key == key
  }
}

/// Records and bytes: a bound, or what is used.
struct OnceRoom: Equatable {
  var records = 0
  var bytes = 0

  /// Whether so much more fits into a bound.
  func has(_ more: OnceRoom, within most: OnceRoom) -> Bool {
    records + more.records <= most.records && bytes + more.bytes <= most.bytes
  }

  var quarter: OnceRoom { OnceRoom(records: records / 4, bytes: bytes / 4) }

  static func += (lhs: inout OnceRoom, rhs: OnceRoom) {
    lhs.records += rhs.records
    lhs.bytes += rhs.bytes
  }

  static func -= (lhs: inout OnceRoom, rhs: OnceRoom) {
    lhs.records -= rhs.records
    lhs.bytes -= rhs.bytes
  }
}
