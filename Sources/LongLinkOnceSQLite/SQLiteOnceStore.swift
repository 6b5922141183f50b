// SPDX-License-Identifier: Apache-2.0

#if SQLite
public import GRDB

/// A store of requests that run once, in an SQLite file.
///
/// Its records outlive the server's process: a client that repeats a request after a restart gets
/// the answer that the request had. What was running when the process ended has an unknown end, and
/// runs again only if its route says so (`OnceUnknownEnd.runAgain`).
///
/// ```swift
/// let store = try SQLiteOnceStore(path: "/var/lib/shop/once.sqlite")
/// // Give it to a server, and close it after the server:
/// try await store.close()
/// ```
///
/// One process has the file open at a time; a second one is refused. Several servers of a process
/// can share the store. The file is made for its owner alone (mode 0600). It must not be on a
/// network file system.
///
/// ## The application's own transaction
///
/// An application that keeps its tables in the same file can change them and end the record in one
/// transaction, so that both are there or neither is. It uses `database` for all that it writes:
///
/// ```swift
/// guard let once = request.once else { throw Rejection(1_000, "use retry: .once") }
/// try await store.database.write { db in
///   try db.execute(sql: "INSERT INTO orders (number) VALUES (?)", arguments: [order.number])
///   try once.complete(with: receipt) { try store.complete($0, with: $1, in: db) }
///   return receipt
/// }
/// ```
///
/// The durability holds for the application's tables, too.
public final class SQLiteOnceStore: OnceStore {
  /// What the records survive, and the application's own tables in the file.
  public enum Durability: Hashable, Sendable {
    /// Records survive the end of the process at any moment, but not that of the machine: when the
    /// power fails, the last ones may be lost, and the store then has a new name. The default.
    ///
    /// It is SQLite's `synchronous=NORMAL`: a transaction does not wait for the disk. So a payment
    /// in a table of yours that was committed and answered can be lost, too, when the power fails.
    /// Use `machine` where the file holds effects.
    case process
    /// Records also survive the end of the machine, if the disk keeps what it says it has written.
    /// The store keeps its name.
    ///
    /// It is SQLite's `synchronous=FULL`: each transaction waits for the disk, for a few
    /// milliseconds on many machines. Callers that wait at the same time share a transaction.
    case machine
  }

  /// The connections to the file, for the application's own tables.
  ///
  /// Keep transactions that write short: records wait for them. One that is longer than the
  /// server's `storeTimeout` makes every begin fail with 503. The names of the store's own tables
  /// begin with `longlink_once_`; do not change these.
  public let database: DatabasePool
  private let writer: OnceWriter

  /// Opens the file, or makes it. Its folder has to exist.
  ///
  /// It blocks for as long as the file system takes, and reads all records once. It traps if
  /// `maxRecords` or `maxBytes` is too small.
  ///
  /// - Parameters:
  ///   - path: The path of the file. SQLite has two more beside it, whose names end with `-wal` and
  ///     `-shm`, and the store has one that ends with `.lock`.
  ///   - durability: What the records survive. Default: the end of the process.
  ///   - maxRecords: The most records, at least 4. One scope has at most a quarter of them, and so
  ///     have all clients without a principal together. Default: 100,000.
  ///   - maxBytes: The most bytes of all records, estimated; at least 4,096. They are shared out in
  ///     the same way. The file may be larger, and does not become smaller. Default: 64 MiB.
  /// - Throws: `inUse`, `notPrivate`, `damaged`, `newerVersion`, `noSpace`, `busy` or `failed`.
  public convenience init(
    path: String, durability: Durability = .process, maxRecords: Int = 100_000,
    maxBytes: Int = 64 << 20
  ) throws(SQLiteOnceError) {
    try self.init(
      path: path, durability: durability, maxRecords: maxRecords, maxBytes: maxBytes, on: .own)
  }

  package init(
    path: String, durability: Durability, maxRecords: Int, maxBytes: Int, on machine: StoreMachine
  ) throws(SQLiteOnceError) {
    precondition(maxRecords >= 4, "a store has room for 4 records or more")
    precondition(maxBytes >= 4_096, "a store has room for 4,096 bytes or more")
    let file = OnceFile(path)
    let lock = try file.lock()
    let database = try file.open()
    let counts = RecordCounts(most: RecordRoom(records: maxRecords, bytes: maxBytes))
    do {
      let opened = try database.writeWithoutTransaction { db in
        let opened = try OnceSchema.open(
          db, machine, survivesMachine: durability == .machine, path: file.path)
        try counts.countAll(db)
        if durability == .machine { try db.execute(sql: "PRAGMA synchronous = FULL") }
        return opened
      }
      writer = OnceWriter(database, lock, counts, opened, on: machine)
    } catch {
      throw SQLiteOnceError(error, in: "opening the records", at: file.path)
    }
    self.database = database
  }

  /// The number of records, expired ones that are not removed yet included.
  public var recordCount: Int { writer.recordCount }

  /// The number of calls that wait for the writer.
  package var waitingCount: Int { writer.waitingCount }

  /// Gives the store a new name, so that clients do not repeat what may have run before.
  ///
  /// Call it once after the file was restored from a backup, or from a snapshot of the machine,
  /// before a server uses the store: requests that ran after the backup are not in it. Records stay
  /// as they are. It throws an `SQLiteOnceError` if the file cannot be written. The command calls
  /// it for `longlink serve --once FILE --once-restored`.
  public func renew() async throws {
    do {
      try await writer.rename()
    } catch {
      throw SQLiteOnceError(error, in: "changing the store's name", at: database.path)
    }
  }

  /// Closes the file, once the calls that wait have ended. Call it after the servers that use the
  /// store have shut down.
  ///
  /// A store that was closed keeps its name even if the machine is started again. Requests that are
  /// still running have an unknown end. It throws an `SQLiteOnceError` if the file cannot be
  /// written, or if something else still uses `database`; call it again then.
  public func close() async throws {
    do {
      try await writer.close()
    } catch {
      throw SQLiteOnceError(error, in: "closing the database", at: database.path)
    }
  }
}

extension SQLiteOnceStore {
  /// Returns the store's name and the time of its clock in ms. While the file cannot be written,
  /// the clock stands. Throws an `SQLiteOnceError` if the store is closed.
  public func status() async throws -> OnceStoreStatus {
    if let status = writer.statusNow { return status }
    do {
      return try await writer.run { $0.status }
    } catch {
      // The clock stands while the file cannot be written; clients then get 503 for a request.
      guard let status = writer.lastStatus else { throw error }
      return status
    }
  }

  /// Finds a record or begins one, as `OnceStore` says. Throws an `SQLiteOnceError` if the file
  /// cannot be written, or the store is closed.
  public func begin(_ attempt: OnceAttempt) async throws -> OnceFinding {
    try await writer.run { try $0.begin(attempt) }
  }

  /// Ends the record that bears the token, and keeps the answer; nil if none is to be kept.
  ///
  /// Returns false, and changes nothing, if no record bears the token or it has ended. Throws an
  /// `SQLiteOnceError` if the file cannot be written, or the store is closed.
  public func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool {
    try await writer.run { try $0.complete(token, with: answer) }
  }

  /// Removes the record that bears the token: its request did not run, or may run again.
  ///
  /// Returns false, and changes nothing, if no record bears the token or it has ended. Throws an
  /// `SQLiteOnceError` if the file cannot be written, or the store is closed.
  public func abandon(_ token: OnceToken) async throws -> Bool {
    try await writer.run { try $0.abandon(token) }
  }

  /// Ends the record that bears this token, within a transaction of the application's, and keeps
  /// the answer; nil if none is to be kept.
  ///
  /// Call it within `OnceContext.complete(with:code:_:)`, so that the server knows the answer. It
  /// does what `complete(_:with:)` does, but the record ends only if the transaction is committed.
  /// If it returns false, the run is outdated: throw an error out of the transaction, so that its
  /// changes are undone.
  ///
  /// - Parameters:
  ///   - token: The token of the request's begin.
  ///   - answer: What the client gets, now and when it repeats the request.
  ///   - db: The connection that a `write` of `database` has passed on.
  /// - Throws: An `SQLiteOnceError` with `noTransaction` or `closed`, or a `DatabaseError` of
  ///   GRDB's, which `write` understands.
  public func complete(
    _ token: OnceToken, with answer: OnceAnswer?, in db: Database
  ) throws -> Bool {
    guard db.isInsideTransaction else {
      throw SQLiteOnceError(
        .noTransaction, database.path, "call complete(_:with:in:) in a `write` of `database`")
    }
    return try writer.complete(token, with: answer, in: db)
  }
}
#endif
