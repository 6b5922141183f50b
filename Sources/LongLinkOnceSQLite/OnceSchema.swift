// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Foundation
internal import GRDB

/// The tables of a store, and the one row about the store itself.
enum OnceSchema {
  /// The version of the tables. A store refuses newer ones.
  private static let version = 1

  /// What a store has found in its file, and noted there, when it was opened.
  struct Opened {
    let name: [UInt8]
    let start: Int64
  }

  private static let tables = """
    CREATE TABLE longlink_once_store (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version INTEGER NOT NULL,
      name BLOB NOT NULL,
      -- No time of the store's beyond this one has been shown; ms.
      time INTEGER NOT NULL,
      -- The run of the machine whose end may lose records; NULL if it loses none.
      boot TEXT
    );
    CREATE TABLE longlink_once_records (
      id INTEGER PRIMARY KEY,
      scope BLOB NOT NULL,
      type INTEGER NOT NULL,
      key BLOB NOT NULL,
      number INTEGER NOT NULL,
      fingerprint BLOB NOT NULL,
      -- 0 running, 1 answered, 2 answered but not kept, 3 the end is unknown
      state INTEGER NOT NULL,
      runs INTEGER NOT NULL,
      expiry INTEGER NOT NULL,
      code INTEGER,
      body BLOB
    );
    CREATE UNIQUE INDEX longlink_once_places ON longlink_once_records (scope, type, key);
    CREATE INDEX longlink_once_expiries ON longlink_once_records (expiry) WHERE state <> 0;
    """

  /// Makes the tables, or takes over what a process has left, in one durable transaction.
  static func open(
    _ db: Database, _ machine: StoreMachine, survivesMachine: Bool, path: String
  ) throws -> Opened {
    var opened: Opened?
    try durably(db) {
      if try db.tableExists("longlink_once_store") {
        try check(db, path)
      } else {
        try db.execute(sql: tables)
      }
      // What was running when the process ended.
      try db.execute(sql: "UPDATE longlink_once_records SET state = 3 WHERE state = 0")
      opened = try note(db, machine, survivesMachine)
    }
    guard let opened else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
    return opened
  }

  /// Runs a transaction that also survives the end of the machine.
  static func durably(_ db: Database, _ changes: () throws -> Void) throws {
    let normal = try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? 1
    try db.execute(sql: "PRAGMA synchronous = FULL")
    defer { try? db.execute(sql: "PRAGMA synchronous = \(normal)") }
    try db.inTransaction(.immediate) {
      try changes()
      return .commit
    }
  }

  static func newName() -> [UInt8] { (0..<16).map { _ in UInt8.random(in: 0...255) } }

  /// Gives the store another name.
  static func rename(to name: [UInt8], _ db: Database) throws {
    try db.execute(sql: "UPDATE longlink_once_store SET name = ?", arguments: [Data(name)])
  }

  /// Lets the store show times up to this one.
  static func setTime(_ time: Int64, _ db: Database) throws {
    try db.cachedStatement(sql: "UPDATE longlink_once_store SET time = ?")
      .execute(arguments: [time])
  }

  /// Notes that the store is closed and that its records are durable.
  static func close(at time: Int64, _ db: Database) throws {
    try setTime(time, db)
    try db.execute(sql: "UPDATE longlink_once_store SET boot = NULL")
  }

  /// Notes that the store is open, and returns its name and the time from which it counts.
  private static func note(
    _ db: Database, _ machine: StoreMachine, _ survivesMachine: Bool
  ) throws -> Opened {
    let found = try Row.fetchOne(db, sql: "SELECT name, time, boot FROM longlink_once_store")
    // Without a clean end before, the machine may have lost the last records when it stopped.
    let boot = found?["boot"] as String?
    let mayHaveLost = boot != nil && (boot != machine.bootID || machine.bootID == nil)
    let kept = mayHaveLost ? nil : (found?["name"] as Data?).map { [UInt8]($0) }
    // A damaged file may state any time.
    let time = min((found?["time"] as Int64?) ?? 0, Int64.max / 4)
    let opened = Opened(
      name: kept ?? newName(), start: max(1, machine.wallTime(), time + 1))
    try db.execute(
      sql: """
        INSERT OR REPLACE INTO longlink_once_store (id, version, name, time, boot)
        VALUES (1, ?, ?, ?, ?)
        """,
      arguments: [
        version, Data(opened.name), opened.start + StoreClock.lead,
        survivesMachine ? nil : machine.bootID ?? "",
      ])
    return opened
  }

  /// Refuses records of a newer version, and damaged ones. It looks at the store's own table alone;
  /// those of the application may be large.
  private static func check(_ db: Database, _ path: String) throws {
    let found = try Int.fetchOne(db, sql: "SELECT version FROM longlink_once_store") ?? version
    guard found <= version else {
      throw SQLiteOnceError(
        .newerVersion, path,
        "its records have version \(found), and this program knows versions up to \(version). "
          + "Use a newer version of LongLink, or another file")
    }
    let state = try String.fetchOne(db, sql: "PRAGMA quick_check('longlink_once_records')")
    guard state == "ok" else {
      throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: state)
    }
  }
}
#endif
