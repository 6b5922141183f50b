// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Foundation
internal import GRDB
internal import LongLinkCore
internal import LongLinkOnceStore

/// The records in the file, within one transaction.
struct OnceTurn {
  private struct Found {
    let id: Int64
    let isOver: Bool
    let room: RecordRoom
    let runs: Int
    let finding: OnceFinding
  }

  let db: Database
  /// The store's name and time in this transaction.
  let status: OnceStoreStatus
  let counts: RecordCounts
  private(set) var changes: [RecordCounts.Change] = []
  private var inserting: SQLStatement?
  private var ending: SQLStatement?

  init(_ db: Database, _ status: OnceStoreStatus, _ counts: RecordCounts) {
    self.db = db
    self.status = status
    self.counts = counts
  }

  private var now: Int64 { status.time }

  /// The condition of a record that bears a token and has not ended.
  private static let open = """
    scope = ? AND type = ? AND key = ? AND number = ? AND (state = 0 OR state = 3 AND expiry > ?)
    """

  // MARK: What the store does

  mutating func begin(_ attempt: OnceAttempt) throws -> OnceFinding {
    guard attempt.storeName == status.name else { return .otherName }
    let mayBegin = !attempt.isOutOfTime(at: now)
    // Nearly all keys are new, and this is one statement.
    if mayBegin, try insert(attempt) { return .run(number: 1) }
    if let found = try find(attempt) {
      if !found.isOver { return try begin(attempt, of: found) }
      try db.cachedStatement(sql: "DELETE FROM longlink_once_records WHERE id = ?")
        .execute(arguments: [found.id])
      add(-found.room, to: attempt.token.scope)
    }
    guard mayBegin else { return .outOfTime }
    // Expired records may have the room.
    for _ in 0..<16 {
      if try insert(attempt) { return .run(number: 1) }
      if try removeExpired(64) < 64 { break }
    }
    return try insert(attempt) ? .run(number: 1) : .full
  }

  /// Ends a record. An answer without room is not kept.
  mutating func complete(_ token: OnceToken, with answer: OnceAnswer?) throws -> Bool {
    let room = RecordRoom(bytes: answer?.body.count ?? 0)
    let hasRoom = counts.take(room, for: token.scope)
    var isDone = false
    defer { if hasRoom, !isDone { counts.add(-room, to: token.scope) } }
    isDone = try end(token, with: hasRoom ? answer : nil)
    if hasRoom, isDone { changes.append(RecordCounts.Change(scope: token.scope, room: room)) }
    return isDone
  }

  private mutating func end(_ token: OnceToken, with answer: OnceAnswer?) throws -> Bool {
    let statement =
      try ending
      ?? SQLStatement(
        "UPDATE longlink_once_records SET state = ?, code = ?, body = ? WHERE \(Self.open)", db)
    ending = statement
    statement.set(1, answer == nil ? 2 : 1)
    statement.set(2, (answer?.code.rawValue).map(Int64.init))
    statement.set(3, answer?.body ?? [])
    statement.set(4, token)
    statement.set(8, now)
    return try statement.run()
  }

  mutating func abandon(_ token: OnceToken) throws -> Bool {
    try db.cachedStatement(sql: "DELETE FROM longlink_once_records WHERE \(Self.open)")
      .execute(
        arguments: [
          Data(token.scope.bytes), token.type.rawValue, Data(token.key), token.number, now,
        ])
    guard db.changesCount > 0 else { return false }
    add(-room(of: token), to: token.scope)
    return true
  }

  /// Removes records whose expiry has passed, `most` at most, and returns how many.
  mutating func removeExpired(_ most: Int) throws -> Int {
    let statement = try db.cachedStatement(
      sql: """
        DELETE FROM longlink_once_records WHERE id IN (
          SELECT id FROM longlink_once_records WHERE state <> 0 AND expiry <= ?
          ORDER BY expiry LIMIT ?)
        RETURNING scope, length(key), ifnull(length(body), 0)
        """)
    let rows = try Row.fetchCursor(statement, arguments: [now, most])
    var removed = 0
    while let row = try rows.next() {
      removed += 1
      let scope = [UInt8](row[0] as Data)
      guard let known = OnceScope(bytes: scope) else { continue }
      let room = RecordRoom(scopeBytes: scope.count, keyBytes: row[1], bodyBytes: row[2])
      add(-room, to: known)
    }
    return removed
  }

  /// Whether the record of the token has an answer of this size.
  func hasAnswer(of size: Int, _ token: OnceToken) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        SELECT 1 FROM longlink_once_records
        WHERE scope = ? AND type = ? AND key = ? AND number = ? AND state = 1
          AND ifnull(length(body), 0) = ?
        """)
    return try Int.fetchOne(
      statement,
      arguments: [
        Data(token.scope.bytes), token.type.rawValue, Data(token.key), token.number, size,
      ]) != nil
  }

  // MARK: Counts

  private mutating func add(_ room: RecordRoom, to scope: OnceScope) {
    counts.add(room, to: scope)
    changes.append(RecordCounts.Change(scope: scope, room: room))
  }

  private func room(of token: OnceToken) -> RecordRoom {
    RecordRoom(scopeBytes: token.scope.bytes.count, keyBytes: token.key.count)
  }

  // MARK: Rows

  /// Makes a record that is running; false if there is one of this key, or no room.
  private mutating func insert(_ attempt: OnceAttempt) throws -> Bool {
    let token = attempt.token
    let room = room(of: token)
    guard counts.take(room, for: token.scope) else { return false }
    var isNew = false
    defer { if !isNew { counts.add(-room, to: token.scope) } }
    let statement =
      try inserting
      ?? SQLStatement(
        """
        INSERT INTO longlink_once_records
          (scope, type, key, number, fingerprint, state, runs, expiry)
        VALUES (?, ?, ?, ?, ?, 0, 1, ?) ON CONFLICT DO NOTHING
        """, db)
    inserting = statement
    statement.set(1, token)
    statement.set(5, attempt.fingerprint.bytes)
    statement.set(6, attempt.expiry(at: now))
    isNew = try statement.run()
    if isNew { changes.append(RecordCounts.Change(scope: token.scope, room: room)) }
    return isNew
  }

  private func find(_ attempt: OnceAttempt) throws -> Found? {
    let token = attempt.token
    let statement = try db.cachedStatement(
      sql: """
        SELECT id, state, expiry, runs, fingerprint, code, body FROM longlink_once_records
        WHERE scope = ? AND type = ? AND key = ?
        """)
    let rows = try Row.fetchCursor(
      statement,
      arguments: [Data(token.scope.bytes), token.type.rawValue, Data(token.key)])
    guard let row = try rows.next() else { return nil }
    let state: Int = row[1]
    let body = (row[6] as Data?).map { [UInt8]($0) } ?? []
    let finding: OnceFinding =
      switch state {
      case _ where row[4] as Data != Data(attempt.fingerprint.bytes): .otherFingerprint
      case 0: .running
      case 1: .answered(OnceAnswer(code: ResponseCode(wire: row[5]), body: body))
      case 2: .notKept
      default: .unknown
      }
    return Found(
      id: row[0], isOver: state != 0 && row[2] <= now,
      room: room(of: token) + RecordRoom(bytes: body.count), runs: row[3], finding: finding)
  }

  /// Begins at a record that is there.
  private func begin(_ attempt: OnceAttempt, of found: Found) throws -> OnceFinding {
    guard found.finding == .unknown, attempt.runsAgain else { return found.finding }
    let statement = try db.cachedStatement(
      sql: """
        UPDATE longlink_once_records SET number = ?, expiry = ?, state = 0, runs = ? WHERE id = ?
        """)
    try statement.execute(
      arguments: [attempt.token.number, attempt.expiry(at: now), found.runs + 1, found.id])
    return .run(number: found.runs + 1)
  }
}
#endif
