// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import GRDB
import LongLinkOnceSQLite
import Synchronization

/// Begins and completes records in a file, as a server does for requests that run once.
@main struct OnceRate: AsyncParsableCommand {
  @Argument(help: "The file, which is made.") var path: String
  @Option(help: "For how long, in seconds.") var seconds = 5
  @Option(help: "How many requests are in flight.") var concurrency = 128
  @Option(help: "For how long a record is kept, in milliseconds.") var retention: Int64 = 2_000
  @Flag(help: "Wait for the disk.") var full = false

  func run() async throws {
    let store = try SQLiteOnceStore(
      path: path, durability: full ? .machine : .process, maxRecords: 100_000_000,
      maxBytes: 1 << 40)
    let commits = Commits()
    store.database.add(transactionObserver: commits)
    let end = ContinuousClock.now + .seconds(seconds)
    let requests = try await withThrowingTaskGroup(of: Int.self) { group in
      for caller in 0..<concurrency {
        group.addTask { try await call(store, caller, until: end) }
      }
      return try await group.reduce(0, +)
    }
    let turns = commits.count.load(ordering: .relaxed)
    print("\(requests / seconds) \(2 * requests / max(1, turns))")
    try await store.close()
  }

  private func call(
    _ store: SQLiteOnceStore, _ caller: Int, until end: ContinuousClock.Instant
  ) async throws -> Int {
    let scope = OnceScope(principal: "principal \(caller)")
    let answer = OnceAnswer(code: .ok, body: [UInt8](repeating: 7, count: 64))
    var random = SystemRandomNumberGenerator()
    var requests = 0
    while ContinuousClock.now < end {
      let numbers = SIMD2<UInt64>(random.next(), random.next())
      let key = withUnsafeBytes(of: numbers) { [UInt8]($0) }
      let token = OnceToken(
        scope: scope, type: 10, key: key, number: Int64(truncatingIfNeeded: random.next() as UInt64)
      )
      let fingerprint = OnceFingerprint(bytes: key + key)!
      let status = try await store.status()
      let found = try await store.begin(
        OnceAttempt(
          token: token, fingerprint: fingerprint, keyTime: status.time, retention: retention,
          storeName: status.name))
      guard found == .run(number: 1), try await store.complete(token, with: answer) else {
        throw ValidationError("a record that should run: \(found)")
      }
      requests += 1
    }
    return requests
  }
}

private final class Commits: TransactionObserver, Sendable {
  let count = Atomic<Int>(0)

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidRollback(_ db: Database) {}
  func databaseDidCommit(_ db: Database) { count.add(1, ordering: .relaxed) }
}
