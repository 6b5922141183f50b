// SPDX-License-Identifier: Apache-2.0

/// The scopes that have records in a `MemoryOnceStore`, and what each of them uses.
///
/// A record has the number of its scope. So the bytes of the scope, which may be 256, are there
/// once for all of its records.
struct OnceScopes {
  static let none = UInt32.max

  private struct Entry {
    var bytes: [UInt8]
    var used = OnceRoom()
    var nextFree = OnceScopes.none
  }

  private var entries: [Entry] = []
  private var numbers: [[UInt8]: UInt32] = [:]
  private var firstFree = OnceScopes.none
  private var usedByAnonymous = OnceRoom()

  /// The bytes that a scope takes beside its records: its array, and its places here, which may be
  /// twice as many as are used.
  static func bytes(of scope: [UInt8]) -> Int { OnceRecord.arrayBytes(scope.count) + 128 }

  /// The number of a scope; nil if it has no records.
  func number(of scope: [UInt8]) -> UInt32? { numbers[scope] }

  func bytes(of number: UInt32) -> [UInt8] { entries[Int(number)].bytes }

  func isAnonymous(_ number: UInt32) -> Bool { OnceScope.isAnonymous(bytes(of: number)) }

  /// What counts against the share of a scope; nil stands for one that has no records.
  func share(of number: UInt32?, isAnonymous: Bool) -> OnceRoom {
    if isAnonymous { return usedByAnonymous }
    return number.map { entries[Int($0)].used } ?? OnceRoom()
  }

  /// Adds a scope, which is about to get its first record.
  mutating func add(_ scope: [UInt8]) -> UInt32 {
    let number: UInt32
    if firstFree == Self.none {
      number = UInt32(entries.count)
      entries.append(Entry(bytes: scope))
    } else {
      number = firstFree
      firstFree = entries[Int(number)].nextFree
      entries[Int(number)] = Entry(bytes: scope)
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
    let scope = bytes(of: number)
    if entries[Int(number)].used.records == size.records { size.bytes += Self.bytes(of: scope) }
    entries[Int(number)].used -= size
    if OnceScope.isAnonymous(scope) { usedByAnonymous -= size }
    if entries[Int(number)].used.records == 0 {
      numbers[scope] = nil
      entries[Int(number)] = Entry(bytes: [], nextFree: firstFree)
      firstFree = number
    }
    return size
  }
}
