// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Foundation
internal import GRDB
internal import LongLinkOnceStore
internal import Synchronization

/// Records and bytes: a bound, or what is used.
struct RecordRoom: Equatable, Sendable {
  var records = 0
  var bytes = 0

  static func - (lhs: RecordRoom, rhs: RecordRoom) -> RecordRoom {
    RecordRoom(records: lhs.records - rhs.records, bytes: lhs.bytes - rhs.bytes)
  }

  static func + (lhs: RecordRoom, rhs: RecordRoom) -> RecordRoom {
    RecordRoom(records: lhs.records + rhs.records, bytes: lhs.bytes + rhs.bytes)
  }

  static prefix func - (room: RecordRoom) -> RecordRoom { RecordRoom() - room }

  /// The estimated bytes that a record takes in the file without its answer: those of the scope and
  /// the key stand in the table and in its index.
  init(scopeBytes: Int, keyBytes: Int, bodyBytes: Int = 0) {
    records = 1
    bytes = 128 + 2 * (scopeBytes + keyBytes) + bodyBytes
  }

  init(records: Int = 0, bytes: Int = 0) {
    self.records = records
    self.bytes = bytes
  }

  func fits(in most: RecordRoom) -> Bool { records <= most.records && bytes <= most.bytes }
}

/// How much room the records of a store take, in all and by scope, so that no begin has to count
/// rows.
final class RecordCounts: Sendable {
  /// What a transaction has changed, to be taken back if that is undone.
  struct Change: Sendable {
    let scope: OnceScope
    let room: RecordRoom
  }

  private struct Used: Sendable {
    var all = RecordRoom()
    /// Of all clients without a principal together.
    var anonymous = RecordRoom()
    var byScope: [OnceScope: RecordRoom] = [:]
  }

  private let most: RecordRoom
  private let quarter: RecordRoom
  private let used = Mutex(Used())

  init(most: RecordRoom) {
    self.most = most
    quarter = RecordRoom(records: most.records / 4, bytes: most.bytes / 4)
  }

  /// The room that all records take.
  var all: RecordRoom { used.withLock { $0.all } }

  /// Counts the records that are there when the store is opened.
  func countAll(_ db: Database) throws {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT scope, count(*), sum(length(key)), sum(ifnull(length(body), 0))
        FROM longlink_once_records GROUP BY scope
        """)
    while let row = try rows.next() {
      let bytes = [UInt8](row[0] as Data)
      guard let scope = OnceScope(bytes: bytes) else { continue }
      let count: Int = row[1]
      let one = RecordRoom(scopeBytes: bytes.count, keyBytes: 0).bytes
      let room = RecordRoom(records: count, bytes: count * one + 2 * row[2] + row[3])
      add(room, to: scope)
    }
  }

  /// Takes room for the scope; false if there is none, and then none is taken.
  func take(_ room: RecordRoom, for scope: OnceScope) -> Bool {
    used.withLock { used in
      guard (used.all + room).fits(in: most) else { return false }
      let fits =
        scope.isAnonymous
        ? add(room, &used.anonymous) : add(room, &used.byScope[scope, default: RecordRoom()])
      if fits {
        used.all = used.all + room
      } else if used.byScope[scope] == RecordRoom() {
        used.byScope[scope] = nil
      }
      return fits
    }
  }

  /// Adds to what a scope has if the sum is within its bound.
  private func add(_ room: RecordRoom, _ own: inout RecordRoom) -> Bool {
    guard (own + room).fits(in: quarter) else { return false }
    own = own + room
    return true
  }

  /// Adds the room of records that are there already, or gives some back if it is negative.
  func add(_ room: RecordRoom, to scope: OnceScope) {
    used.withLock { Self.add(room, to: scope, &$0) }
  }

  /// Takes back changes.
  func undo(_ changes: [Change]) {
    used.withLock { used in
      for change in changes { Self.add(-change.room, to: change.scope, &used) }
    }
  }

  private static func add(_ room: RecordRoom, to scope: OnceScope, _ used: inout Used) {
    used.all = used.all + room
    if scope.isAnonymous {
      used.anonymous = used.anonymous + room
    } else {
      let own = used.byScope[scope, default: RecordRoom()] + room
      used.byScope[scope] = own == RecordRoom() ? nil : own
    }
  }
}
#endif
