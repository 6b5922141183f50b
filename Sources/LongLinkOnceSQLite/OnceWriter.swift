// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Dispatch
internal import GRDB
internal import LongLinkOnceStore
internal import LongLinkTransport
internal import Synchronization

/// Writes the file for all callers.
///
/// All that waits when the writer is free goes into one transaction, because a transaction costs
/// far more than a row. Between two of them, the writer does what the application has asked of it.
final class OnceWriter: Sendable {
  private struct Waiting: Sendable {
    /// Does what the caller wants, and returns what tells the caller once it is committed.
    let perform: @Sendable (inout OnceTurn) throws -> @Sendable () -> Void
    let fail: @Sendable (SQLiteOnceError) -> Void
  }

  private struct State: Sendable {
    var name: [UInt8]
    /// The time in the file; no caller sees a later one.
    var time: Int64
    var waiting: [Waiting] = []
    var isBusy = false
    var isClosed = false
    var isFinished = false
  }

  private typealias Results = [Result<@Sendable () -> Void, SQLiteOnceError>]

  /// The most calls that one transaction takes.
  private static let mostCalls = 256
  /// After so many calls that fail one after the other, each in a transaction of its own, the rest
  /// of them fail too: nothing can be written now.
  private static let mostFailures = 8

  private let pool: DatabasePool
  /// Keeps other stores from the file.
  private let lock: OpenFile
  private let counts: RecordCounts
  private let clock: StoreClock
  private let state: Mutex<State>

  init(
    _ pool: DatabasePool, _ lock: OpenFile, _ counts: RecordCounts, _ opened: OnceSchema.Opened,
    on machine: StoreMachine
  ) {
    self.pool = pool
    self.lock = lock
    self.counts = counts
    clock = StoreClock(start: opened.start, on: machine)
    state = Mutex(State(name: opened.name, time: opened.start + StoreClock.lead))
  }

  var recordCount: Int { counts.all.records }

  var waitingCount: Int { state.withLock { $0.waiting.count } }

  // MARK: Callers

  /// The status, if it can be told without the file.
  var statusNow: OnceStoreStatus? {
    let now = clock.now
    return state.withLock {
      $0.isClosed || now > $0.time ? nil : OnceStoreStatus(name: $0.name, time: now)
    }
  }

  /// The last time that may be told without the file; nil if the store is closed.
  var lastStatus: OnceStoreStatus? {
    state.withLock { $0.isClosed ? nil : OnceStoreStatus(name: $0.name, time: $0.time) }
  }

  /// Runs a call in the next transaction, and returns when that is committed.
  func run<Value: Sendable>(
    _ call: @escaping @Sendable (inout OnceTurn) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { caller in
      let waiting = Waiting(
        perform: { turn in
          let value = try call(&turn)
          return { caller.resume(returning: value) }
        },
        fail: { caller.resume(throwing: $0) })
      let (isClosed, starts) = state.withLock { state in
        if state.isClosed { return (true, false) }
        state.waiting.append(waiting)
        defer { state.isBusy = true }
        return (false, !state.isBusy)
      }
      if isClosed { waiting.fail(closedError) }
      if starts { schedule() }
    }
  }

  /// Ends a record within a transaction of the application's.
  func complete(
    _ token: OnceToken, with answer: OnceAnswer?, in db: Database
  ) throws -> Bool {
    if state.withLock({ $0.isClosed }) { throw closedError }
    var turn = OnceTurn(db, status(at: clock.now), counts)
    let isDone = try turn.complete(token, with: answer)
    let changes = turn.changes
    guard !changes.isEmpty, let answer else { return isDone }
    let undo: @Sendable () -> Void = { [counts] in counts.undo(changes) }
    db.afterNextTransaction { db in
      // The application may have undone a part of its transaction.
      let turn = OnceTurn(db, self.status(at: self.clock.now), self.counts)
      if (try? turn.hasAnswer(of: answer.body.count, token)) != true { undo() }
    } onRollback: { _ in
      undo()
    }
    return isDone
  }

  /// Gives the store a new name.
  func rename() async throws {
    try await onWriter { db in
      let name = OnceSchema.newName()
      try OnceSchema.durably(db) { try OnceSchema.rename(to: name, db) }
      self.state.withLock { $0.name = name }
    }
  }

  /// Takes no more calls, ends those that wait, and closes the file.
  func close() async throws {
    state.withLock { $0.isClosed = true }
    if !state.withLock({ $0.isFinished }) {
      try await onWriter { db in
        while self.turn(db) {}
        try OnceSchema.durably(db) { try OnceSchema.close(at: self.clock.now, db) }
        self.state.withLock { $0.isFinished = true }
      }
    }
    try await withCheckedThrowingContinuation { caller in
      // It waits for readers.
      DispatchQueue.global().async { caller.resume(with: Result { try self.pool.close() }) }
    }
    lock.unlock()
  }

  /// Runs outside a transaction, between others, even if the caller's task was cancelled.
  private func onWriter(_ body: @escaping @Sendable (Database) throws -> Void) async throws {
    try await withCheckedThrowingContinuation { caller in
      pool.asyncWriteWithoutTransaction { db in caller.resume(with: Result { try body(db) }) }
    }
  }

  private var closedError: SQLiteOnceError {
    SQLiteOnceError(.closed, pool.path, "make a new store, and close it after its servers")
  }

  private func status(at time: Int64) -> OnceStoreStatus {
    OnceStoreStatus(name: state.withLock { $0.name }, time: time)
  }

  // MARK: Turns

  private func schedule() {
    pool.asyncWriteWithoutTransaction { db in
      if self.turn(db) { self.schedule() }
    }
  }

  /// Runs one transaction; returns whether another one is to follow.
  private func turn(_ db: Database) -> Bool {
    let batch = state.withLock { state in
      if state.waiting.count <= Self.mostCalls { return exchange(&state.waiting, with: []) }
      let batch = Array(state.waiting.prefix(Self.mostCalls))
      state.waiting.removeFirst(batch.count)
      return batch
    }
    let (results, hasMore) = perform(batch, db)
    for (waiting, result) in zip(batch, results) {
      switch result {
      case .success(let tell): tell()
      case .failure(let error): waiting.fail(error)
      }
    }
    return state.withLock { state in
      state.isBusy = !state.waiting.isEmpty || hasMore && !state.isClosed
      return state.isBusy
    }
  }

  /// Runs the calls, in one transaction if it can be committed. Returns also whether expired
  /// records are left to be removed.
  private func perform(_ batch: [Waiting], _ db: Database) -> (Results, hasMore: Bool) {
    var hasBegun = false
    var hasMore = false
    do {
      let results = try commit(batch, db) { turn in
        hasBegun = true
        // More than the turn can add, so that expired records become fewer.
        let most = 2 * batch.count + 64
        hasMore = try turn.removeExpired(most) == most
      }
      return (results, hasMore)
    } catch {
      guard hasBegun, batch.count > 1 else { return (batch.map { _ in .failure(error) }, false) }
      return (performAlone(batch, db), false)
    }
  }

  /// Runs each call in a transaction of its own, because one may be why that of all was undone.
  private func performAlone(_ batch: [Waiting], _ db: Database) -> Results {
    var failures: [SQLiteOnceError] = []
    return batch.map { one in
      do throws(SQLiteOnceError) {
        if failures.count == Self.mostFailures { throw failures[0] }
        let results = try commit([one], db) { _ in }
        failures = []
        return results[0]
      } catch {
        if failures.count < Self.mostFailures { failures.append(error) }
        return .failure(error)
      }
    }
  }

  private func commit(
    _ batch: [Waiting], _ db: Database, first: (inout OnceTurn) throws -> Void
  ) throws(SQLiteOnceError) -> Results {
    var changes: [RecordCounts.Change] = []
    var time: Int64?
    var results: Results = []
    do {
      try db.inTransaction(.immediate) {
        let now = clock.now
        var turn = OnceTurn(db, status(at: now), counts)
        defer { changes = turn.changes }
        time = try advance(to: now, db)
        try first(&turn)
        for one in batch {
          do {
            results.append(.success(try one.perform(&turn)))
          } catch {
            // A statement that fails takes back its own changes; some failures take back all.
            guard db.isInsideTransaction else { throw error }
            results.append(.failure(failure(error)))
          }
        }
        return .commit
      }
    } catch {
      counts.undo(changes)
      throw failure(error)
    }
    if let time { state.withLock { $0.time = time } }
    return results
  }

  /// Writes a later time into the file, unless the one there is far enough ahead.
  private func advance(to now: Int64, _ db: Database) throws -> Int64? {
    guard state.withLock({ now > $0.time - StoreClock.lead / 2 }) else { return nil }
    try OnceSchema.setTime(now + StoreClock.lead, db)
    return now + StoreClock.lead
  }

  private func failure(_ error: any Error) -> SQLiteOnceError {
    SQLiteOnceError(error, in: "writing records", at: pool.path)
  }
}
#endif
