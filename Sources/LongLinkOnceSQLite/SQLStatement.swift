// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import GRDB
internal import GRDBSQLite
internal import LongLinkOnceStore

/// A statement that changes rows, and runs for most calls. It gives SQLite its values as they are;
/// GRDB would make several objects of each.
struct SQLStatement {
  private let db: Database
  private let statement: Statement

  init(_ sql: String, _ db: Database) throws {
    self.db = db
    statement = try db.cachedStatement(sql: sql)
  }

  /// Sets a parameter, of which the first is number 1, to a number; nil is NULL.
  func set(_ index: CInt, _ value: Int64?) {
    if let value {
      unsafe sqlite3_bind_int64(statement.sqliteStatement, index, value)
    } else {
      unsafe sqlite3_bind_null(statement.sqliteStatement, index)
    }
  }

  /// Sets a parameter to bytes, of which SQLite makes a copy. None are NULL.
  func set(_ index: CInt, _ bytes: [UInt8]) {
    // SQLITE_TRANSIENT, a macro that Swift cannot see.
    let copies = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    _ = unsafe bytes.withUnsafeBytes {
      unsafe sqlite3_bind_blob(
        statement.sqliteStatement, index, $0.baseAddress, CInt($0.count), copies)
    }
  }

  /// Sets four parameters to what a token is found by.
  func set(_ index: CInt, _ token: OnceToken) {
    set(index, token.scope.bytes)
    set(index + 1, Int64(token.type.rawValue))
    set(index + 2, token.key)
    set(index + 3, token.number)
  }

  /// Runs the statement, and returns whether it has changed a row.
  func run() throws -> Bool {
    let code = unsafe sqlite3_step(statement.sqliteStatement)
    let failure: DatabaseError? =
      if code == SQLITE_DONE {
        nil
      } else {
        // The text of an error is copied, and there always is one.
        unsafe DatabaseError(
          resultCode: ResultCode(rawValue: sqlite3_extended_errcode(db.sqliteConnection)),
          message: String(cString: sqlite3_errmsg(db.sqliteConnection)))
      }
    unsafe sqlite3_reset(statement.sqliteStatement)
    if let failure { throw failure }
    return db.changesCount > 0
  }
}
#endif
