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

  // The small fields are where the compiler would leave gaps.
  var key = OnceKey.fixed(0, 0)
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

  var byteCount: Int { OnceRecord.bytes(of: key) + OnceRecord.arrayBytes(answer.count) }

  /// The bytes of a record with this key and without an answer.
  static func bytes(of key: borrowing OnceKey) -> Int {
    switch key {
    case .fixed: ownBytes
    case .variable(let bytes): ownBytes + arrayBytes(bytes.count)
    }
  }

  /// Makes a record that holds nothing one that is running, of a first begin.
  mutating func begins(_ begin: OnceBegin, _ place: OncePlace, of scope: UInt32, at now: Int64) {
    key = place.key
    type = place.type
    hash = place.hash
    self.scope = scope
    runs = 1
    begins(begin, at: now)
  }

  /// Makes the record one that is running, since a begin.
  mutating func begins(_ begin: OnceBegin, at now: Int64) {
    fingerprint = begin.fingerprint
    number = begin.number
    expiry = begin.expiry(at: now)
    isAhead = begin.keyTime > now
    state = .running
  }

  /// Makes the record one that holds nothing, and whose successor among those is `next`.
  mutating func ends(before next: UInt32) {
    if case .variable = key { key = .fixed(0, 0) }
    answer = []
    state = .free
    self.next = next
  }

  /// What a begin finds. The record is neither free nor expired.
  func finding(of begin: OnceBegin) -> OnceFinding {
    guard fingerprint == begin.fingerprint else { return .otherFingerprint }
    switch state {
    case .running, .free: return .running
    case .answered: return .answered(OnceAnswer(code: ResponseCode(wire: code), body: answer))
    case .notKept: return .notKept
    case .unknown: return .unknown
    }
  }
}

/// A scope with its hash, which is computed once for many requests.
package struct HashedScope: Hashable, Sendable {
  let bytes: [UInt8]
  private let hashValueOfBytes: Int

  package init(_ scope: OnceScope) {
    bytes = scope.bytes
    // Seeded by the process, so that no peer can choose scopes that collide.
    var hasher = Hasher()
    unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    hashValueOfBytes = hasher.finalize()
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(hashValueOfBytes) }

  var isAnonymous: Bool { OnceScope.isAnonymous(bytes) }
}

/// Where a record is to be found: what it is compared with, and the hash of that.
package struct OncePlace: Hashable, Sendable {
  let scope: HashedScope
  let type: UInt32
  let key: OnceKey
  let hash: UInt32

  package init(_ token: OnceToken) {
    self.init(HashedScope(token.scope), token.type, OnceKey(token.key))
  }

  /// Makes a place for a caller that keeps its scope with its hash.
  package init(_ scope: HashedScope, _ type: MessageType, _ key: OnceKey) {
    self.scope = scope
    self.type = type.rawValue
    self.key = key
    // Seeded by the process, so that no peer can choose keys that collide.
    var hasher = Hasher()
    hasher.combine(scope)
    hasher.combine(type.rawValue)
    switch key {
    case .fixed(let first, let second):
      hasher.combine(first)
      hasher.combine(second)
    case .variable(let bytes): hasher.combine(bytes)
    }
    hash = UInt32(truncatingIfNeeded: hasher.finalize())
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
