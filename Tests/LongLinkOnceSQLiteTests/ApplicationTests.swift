// SPDX-License-Identifier: Apache-2.0

#if SQLite
import GRDB
import LongLinkCore
import LongLinkOnceSQLite
import LongLinkOnceStore
import Testing

/// Applications that keep their tables in the file of the store.
@Suite struct ApplicationTests {
  private struct Outdated: Error {}

  private static func pay(
    _ store: SQLiteOnceStore, _ token: OnceToken, _ answer: OnceAnswer = answer,
    thenFail: Bool = false
  ) async throws {
    try await store.database.write { db in
      try db.execute(sql: "UPDATE account SET balance = balance - 1")
      guard try store.complete(token, with: answer, in: db), !thenFail else { throw Outdated() }
    }
  }

  private static func withAccount(
    _ body: (StoreStage, SQLiteOnceStore) async throws -> Void
  ) async throws {
    try await StoreStage.run { stage in
      let store = try stage.open(maxBytes: 64 << 10)
      try await store.run(
        "CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (10)")
      try await body(stage, store)
    }
  }

  private static func balance(_ store: SQLiteOnceStore) async throws -> Int {
    try await store.database.read { try Int.fetchOne($0, sql: "SELECT balance FROM account") ?? 0 }
  }

  @Test func `an effect and its record are there together`() async throws {
    try await Self.withAccount { stage, store in
      let run = stage.token("k")
      _ = try await store.begin(run)
      try await Self.pay(store, run)
      #expect(try await Self.balance(store) == 9)
      #expect(try await store.begin(stage.token("k")) == .answered(answer))
      #expect(try await store.complete(run, with: nil) == false)
    }
  }

  @Test func `a transaction that is undone leaves the record running, and takes no room`()
    async throws
  {
    try await Self.withAccount { stage, store in
      let run = stage.token("k")
      _ = try await store.begin(run)
      // Three of these would not fit.
      let large = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 6_000))
      for _ in 0..<10 {
        await #expect(throws: Outdated.self) {
          try await Self.pay(store, run, large, thenFail: true)
        }
        // The application goes on without a part of its transaction.
        try await store.database.write { db in
          try db.inSavepoint {
            let isDone = try store.complete(run, with: large, in: db)
            #expect(isDone)
            return .rollback
          }
          try db.execute(sql: "UPDATE account SET balance = balance + 0")
        }
      }
      #expect(try await Self.balance(store) == 10)
      #expect(try await store.begin(stage.token("k")) == .running)
      try await Self.pay(store, run, large)
      #expect(try await store.begin(stage.token("k")) == .answered(large))
    }
  }

  @Test func `an outdated run undoes its effect`() async throws {
    try await Self.withAccount { stage, store in
      let run = stage.token("k")
      _ = try await store.begin(run)
      _ = try await store.abandon(run)
      await #expect(throws: Outdated.self) { try await Self.pay(store, run) }
      #expect(try await Self.balance(store) == 10)
    }
  }

  @Test func `a record is not ended outside a transaction`() async throws {
    try await Self.withAccount { stage, store in
      let run = stage.token("k")
      _ = try await store.begin(run)
      await #expect {
        try await store.database.writeWithoutTransaction { db in
          _ = try store.complete(run, with: answer, in: db)
        }
      } throws: {
        ($0 as? SQLiteOnceError)?.code == .noTransaction
      }
      #expect(try await store.begin(stage.token("k")) == .running)
    }
  }
}
#endif
