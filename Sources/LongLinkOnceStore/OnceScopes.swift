// SPDX-License-Identifier: Apache-2.0

/// The scopes that have records in a `MemoryOnceStore`, and what each of them uses.
///
/// A record has the number of its scope. So the bytes of the scope, which may be 256, are there
/// once for all of its records.
struct OnceScopes {
  static let none = UInt32.max

  private struct Entry {
    var scope: HashedScope?
    var used = OnceRoom()
    var nextFree = OnceScopes.none
  }

  private var entries: [Entry] = []
  private var numbers: [HashedScope: UInt32] = [:]
  private var firstFree = OnceScopes.none
  private var usedByAnonymous = OnceRoom()

  /// The bytes that a scope takes beside its records: its array, and its places here, which may be
  /// twice as many as are used.
  static func bytes(of scope: [UInt8]) -> Int { OnceRecord.arrayBytes(scope.count) + 144 }

  /// The number of a scope; nil if it has no records.
  func number(of scope: HashedScope) -> UInt32? { numbers[scope] }

  /// Whether a number is that of a scope.
  func isNumber(_ number: UInt32, of scope: HashedScope) -> Bool {
    entries[Int(number)].scope == scope
  }

  func isAnonymous(_ number: UInt32) -> Bool { entries[Int(number)].scope?.isAnonymous == true }

  /// What counts against the share of a scope; nil stands for one that has no records.
  func share(of number: UInt32?, isAnonymous: Bool) -> OnceRoom {
    if isAnonymous { return usedByAnonymous }
    return number.map { entries[Int($0)].used } ?? OnceRoom()
  }

  /// Adds a scope, which is about to get its first record.
  mutating func add(_ scope: HashedScope) -> UInt32 {
    let number: UInt32
    if firstFree == Self.none {
      number = UInt32(entries.count)
      entries.append(Entry(scope: scope))
    } else {
      number = firstFree
      firstFree = entries[Int(number)].nextFree
      entries[Int(number)] = Entry(scope: scope)
    }
    numbers[scope] = number
    return number
  }

  mutating func add(_ size: OnceRoom, to number: UInt32) {
    entries[Int(number)].used += size
    if isAnonymous(number) { usedByAnonymous += size }
  }

  /// Takes what a record has used from its scope, which goes with its last record. Returns all that
  /// is free now.
  mutating func remove(_ size: OnceRoom, from number: UInt32) -> OnceRoom {
    var size = size
    let isLast = entries[Int(number)].used.records == size.records
    if isLast, let scope = entries[Int(number)].scope { size.bytes += Self.bytes(of: scope.bytes) }
    entries[Int(number)].used -= size
    if isAnonymous(number) { usedByAnonymous -= size }
    if isLast {
      if let scope = entries[Int(number)].scope { numbers[scope] = nil }
      entries[Int(number)] = Entry(nextFree: firstFree)
      firstFree = number
    }
    return size
  }
}
