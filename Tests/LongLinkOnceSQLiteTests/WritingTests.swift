// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import GRDB
import LongLinkCore
import LongLinkOnceSQLite
import LongLinkOnceStore
import Synchronization
import Testing

/// How records are written: together, in small steps, within bounds, and on a disk that is full.
@Suite struct WritingTests {
  /// Counts transactions, and the rows that each removes.
  private final class Commits: TransactionObserver, Sendable {
    let removed = Mutex<[Int]>([])
    private let rows = Mutex(0)

    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool {
      if case .delete(let table) = kind { table == "longlink_once_records" } else { false }
    }
    func databaseDidChange(with event: DatabaseEvent) { rows.withLock { $0 += 1 } }
    func databaseDidRollback(_ db: Database) { rows.withLock { $0 = 0 } }
    func databaseDidCommit(_ db: Database) {
      let count = rows.withLock { rows in
        defer { rows = 0 }
        return rows
      }
      removed.withLock { $0.append(count) }
    }
  }

  private static func begins(
    _ store: SQLiteOnceStore, _ tokens: [OnceToken], retention: Int64 = 60_000
  ) async -> [Result<OnceFinding, any Error>] {
    await withTaskGroup(of: (Int, Result<OnceFinding, any Error>).self) { group in
      for (index, token) in tokens.enumerated() {
        group.addTask {
          do {
            return (index, .success(try await store.begin(token, retention: retention)))
          } catch {
            return (index, .failure(error))
          }
        }
      }
      return await group.reduce(into: [(Int, Result<OnceFinding, any Error>)]()) { $0.append($1) }
        .sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  @Test func `calls that wait at the same time share a transaction`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let commits = Commits()
      store.database.add(transactionObserver: commits)
      let go = store.hold()
      async let results = Self.begins(store, (0..<200).map { stage.token("\($0)") })
      await store.untilWaiting(200)
      go()
      for result in await results { #expect(try result.get() == .run(number: 1)) }
      #expect(commits.removed.withLock { $0.count } == 1)
      #expect(store.recordCount == 200)
    }
  }

  @Test func `many callers at once each get their own answers`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for caller in 0..<32 as Range<UInt8> {
          group.addTask { try await Self.call(store, stage, caller) }
        }
        try await group.waitForAll()
      }
      #expect(store.recordCount == 640)
    }
  }

  private static func call(
    _ store: SQLiteOnceStore, _ stage: StoreStage, _ caller: UInt8
  ) async throws {
    let scope = OnceScope(principal: "caller \(caller)")
    for number in 0..<20 as Range<UInt8> {
      let run = stage.token("key \(number)", scope)
      #expect(try await store.begin(run) == .run(number: 1))
      let answer = OnceAnswer(code: .ok, body: [caller, number])
      #expect(try await store.complete(run, with: answer))
      #expect(try await store.begin(stage.token("key \(number)", scope)) == .answered(answer))
    }
  }

  @Test(arguments: ["ABORT", "FAIL", "ROLLBACK"])
  func `a row that fails does not fail its neighbours`(how: String) async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      try await store.run(
        """
        CREATE TRIGGER refusal BEFORE INSERT ON longlink_once_records WHEN NEW.type = 99
        BEGIN SELECT RAISE(\(how), 'not this one'); END
        """)
      let go = store.hold()
      let tokens = (0..<60).map { stage.token("\($0)", StoreStage.scope, $0 % 20 == 7 ? 99 : 7) }
      async let results = Self.begins(store, tokens)
      await store.untilWaiting(60)
      go()
      for (index, result) in await results.enumerated() {
        if index % 20 == 7 {
          #expect { try result.get() } throws: { "\($0)".contains("not this one") }
        } else {
          #expect(try result.get() == .run(number: 1))
        }
      }
      #expect(store.recordCount == 57)
      #expect(try await store.number("SELECT count(*) FROM longlink_once_records") == 57)
    }
  }

  @Test func `a full disk fails what needs room, and the store works again afterwards`()
    async throws
  {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let first = stage.token("first")
      _ = try await store.begin(first)
      try await store.run("PRAGMA max_page_count = \(try await store.number("PRAGMA page_count"))")
      let large = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 65_536))
      await #expect { try await store.complete(first, with: large) } throws: {
        ($0 as? SQLiteOnceError)?.code == .noSpace && "\($0)".contains("works again")
      }
      // Begins fit until the page is full.
      var failures = 0
      for key in 0..<200 {
        do {
          _ = try await store.begin(stage.token("\(key)"))
        } catch let error as SQLiteOnceError {
          #expect(error.code == .noSpace)
          failures += 1
        }
      }
      #expect(failures > 0)
      #expect(try await store.begin(stage.token("first")) == .running, "it can still read")
      let go = store.hold()
      async let results = Self.begins(store, (300..<400).map { stage.token("\($0)") })
      await store.untilWaiting(100)
      go()
      #expect(await results.allSatisfy { (try? $0.get()) == nil })
      let rows = try await store.number("SELECT count(*) FROM longlink_once_records")
      #expect(store.recordCount == rows)
      try await store.run("PRAGMA max_page_count = 1000000")
      #expect(try await store.complete(first, with: large))
      #expect(try await store.begin(stage.token("300")) == .run(number: 1))
      #expect(try await store.begin(stage.token("first")) == .answered(large))
    }
  }

  @Test func `a file that cannot be written fails calls, and lets the clock stand`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let run = stage.token("k")
      _ = try await store.begin(run)
      try await store.run("PRAGMA query_only = 1")
      stage.pass(5_000)
      let before = try await store.status()
      stage.pass(5_000)
      #expect(try await store.status() == before)
      let calls: [() async throws -> Void] = [
        { _ = try await store.begin(stage.token("other")) },
        { _ = try await store.complete(run, with: answer) },
        { _ = try await store.abandon(run) },
        { try await store.renew() },
      ]
      for call in calls {
        await #expect { try await call() } throws: {
          ($0 as? SQLiteOnceError)?.code == .failed && "\($0)".contains(stage.path)
        }
      }
      try await store.run("PRAGMA query_only = 0")
      let after = try await store.status()
      #expect(after.name == before.name && after.time >= before.time + 8_000)
      #expect(try await store.complete(run, with: answer))
    }
  }

  @Test func `expired records are removed a few at a time`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open()
      let tokens = (0..<500).map { stage.token("\($0)") }
      _ = await Self.begins(store, tokens, retention: 1_000)
      for token in tokens.dropFirst(10) { _ = try await store.complete(token, with: answer) }
      stage.pass(1_000)
      let commits = Commits()
      store.database.add(transactionObserver: commits)
      _ = try await store.begin(stage.token("next"))
      // Those that are still running stay.
      while commits.removed.withLock({ $0.reduce(0, +) }) < 490 { await Task.yield() }
      let steps = commits.removed.withLock { $0 }
      #expect(steps.reduce(0, +) == 490)
      #expect(steps.allSatisfy { $0 <= 80 }, "\(steps)")
      for token in tokens.prefix(10) {
        #expect(try await store.complete(token, with: answer))
      }
    }
  }

  @Test func `expired records make room at once`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open(maxRecords: 4_000)
      for scope in ["ann", "bob"] {
        let tokens = (0..<1_000).map { stage.token("\($0)", OnceScope(principal: scope)) }
        _ = await Self.begins(store, tokens, retention: 1_000)
        for token in tokens { _ = try await store.complete(token, with: nil) }
        stage.pass(1)
      }
      let bob = OnceScope(principal: "bob")
      #expect(try await store.begin(stage.token("next", bob)) == .full)
      stage.pass(1_000)
      // Those of another scope expired before.
      #expect(try await store.begin(stage.token("next", bob)) == .run(number: 1))
    }
  }

  @Test func `a scope has a quarter of the records, and all clients without a name another one`()
    async throws
  {
    try await StoreStage.run { stage in
      var store = try stage.open(maxRecords: 12)
      func begin(_ key: String, _ scope: OnceScope) async throws -> OnceFinding {
        try await store.begin(stage.token(key, scope))
      }
      for scope in ["a", "b"].map(OnceScope.init(principal:)) {
        for key in ["1", "2", "3"] { #expect(try await begin(key, scope) == .run(number: 1)) }
        #expect(try await begin("4", scope) == .full)
        #expect(try await begin("3", scope) == .running)
      }
      for client in 0..<3 as Range<UInt8> {
        #expect(try await begin("1", OnceScope(clientHash: [client])) == .run(number: 1))
      }
      #expect(try await begin("1", OnceScope(clientHash: [3])) == .full)
      for key in ["1", "2", "3"] {
        #expect(try await begin(key, OnceScope(principal: "c")) == .run(number: 1))
      }
      #expect(try await begin("1", OnceScope(principal: "d")) == .full)
      // They are counted again at the next start.
      try await store.close()
      store = try stage.open(maxRecords: 12)
      #expect(store.recordCount == 12)
      #expect(try await begin("1", OnceScope(principal: "d")) == .full)
      try await store.close()
      store = try stage.open(maxRecords: 16)
      #expect(try await begin("1", OnceScope(principal: "d")) == .run(number: 1))
      #expect(try await begin("2", OnceScope(clientHash: [3])) == .run(number: 1))
      #expect(try await begin("3", OnceScope(clientHash: [3])) == .full)
    }
  }

  @Test(arguments: [
    OnceScope(principal: ""), OnceScope(principalHash: [1]), OnceScope(clientHash: [1]),
  ])
  func `the records of every scope count, and give their room back`(_ scope: OnceScope) async throws
  {
    try await StoreStage.run { stage in
      var store = try stage.open(maxRecords: 4)
      let token = stage.token("1", scope)
      #expect(try await store.begin(token, retention: 1_000) == .run(number: 1))
      #expect(try await store.complete(token, with: answer))
      try await store.close()
      store = try stage.open(maxRecords: 4)
      #expect(store.recordCount == 1)
      #expect(try await store.begin(stage.token("2", scope)) == .full)
      stage.pass(1_000)
      #expect(try await store.begin(stage.token("2", scope)) == .run(number: 1))
      #expect(store.recordCount == 1)
    }
  }

  @Test func `an answer without room is not kept`() async throws {
    try await StoreStage.run { stage in
      let store = try stage.open(maxBytes: 8_192)
      let (first, second, third) = (stage.token("1"), stage.token("2"), stage.token("3"))
      for run in [first, second] { #expect(try await store.begin(run) == .run(number: 1)) }
      let large = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 1_000))
      #expect(try await store.complete(first, with: large))
      #expect(try await store.complete(second, with: large))
      #expect(try await store.begin(stage.token("1")) == .answered(large))
      #expect(try await store.begin(stage.token("2")) == .notKept)
      stage.pass(60_000)
      #expect(try await store.begin(third) == .run(number: 1))
      #expect(try await store.complete(third, with: large), "the room is free again")
      #expect(try await store.begin(stage.token("3")) == .answered(large))
    }
  }
}
#endif
