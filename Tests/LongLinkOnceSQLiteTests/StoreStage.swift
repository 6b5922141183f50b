// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import GRDB
import LongLinkCore
import LongLinkOnceSQLite
import LongLinkOnceStore
import Synchronization

/// A folder for the files of stores, and the machine that the stores believe to be on.
final class StoreStage: Sendable {
  private struct Machine {
    var boot: String? = "first"
    var wall: Int64 = 1_000_000
    var uptime: Int64 = 0
  }

  let folder: URL
  private let machine = Mutex(Machine())
  private let tokens = Atomic<Int64>(0)

  /// Runs a body with a stage, and removes its files.
  static func run(_ body: (StoreStage) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-once-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(StoreStage(in: folder))
  }

  private init(in folder: URL) { self.folder = folder }

  var path: String { path("store") }

  func path(_ name: String) -> String { folder.appending(path: name).path }

  func open(
    _ name: String = "store", durability: SQLiteOnceStore.Durability = .process,
    maxRecords: Int = 100_000, maxBytes: Int = 64 << 20
  ) throws(SQLiteOnceError) -> SQLiteOnceStore {
    try SQLiteOnceStore(
      path: path(name), durability: durability, maxRecords: maxRecords, maxBytes: maxBytes,
      on: StoreMachine(
        bootID: machine.withLock { $0.boot },
        wallTime: { [self] in machine.withLock { $0.wall } },
        uptime: { [self] in machine.withLock { $0.uptime } }))
  }

  /// Copies the files of a store that is open, as the end of its process would leave them.
  func copy(_ name: String = "store", to other: String) throws {
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path(name) + suffix) {
      try FileManager.default.copyItem(atPath: path(name) + suffix, toPath: path(other) + suffix)
    }
  }

  // MARK: The machine

  /// Lets time pass.
  func pass(_ milliseconds: Int64) {
    machine.withLock {
      $0.uptime += milliseconds
      $0.wall += milliseconds
    }
  }

  /// Sets the system's time.
  func setWallTime(_ time: Int64) { machine.withLock { $0.wall = time } }

  /// Starts the machine anew; nil if its system has no number of the run.
  func boot(_ id: String?) {
    machine.withLock {
      $0.boot = id
      $0.uptime = 0
    }
  }

  // MARK: Calls

  static let scope = OnceScope(principal: "ann")
  static let fingerprint = OnceFingerprint(bytes: [UInt8](repeating: 7, count: 32))!

  func token(_ key: String, _ scope: OnceScope = scope, _ type: MessageType = 7) -> OnceToken {
    let number = tokens.add(1, ordering: .relaxed).newValue
    return OnceToken(scope: scope, type: type, key: Array(key.utf8), number: number)
  }
}

extension SQLiteOnceStore {
  /// Begins now; the store's name is the one that it has.
  func begin(
    _ token: OnceToken, retention: Int64 = 60_000, runsAgain: Bool = false
  ) async throws -> OnceFinding {
    let status = try await status()
    return try await begin(
      OnceAttempt(
        token: token, fingerprint: StoreStage.fingerprint, keyTime: status.time,
        retention: retention, storeName: status.name, runsAgain: runsAgain))
  }

  /// Keeps the writer busy until the result is called.
  func hold() -> @Sendable () -> Void {
    let gate = DispatchSemaphore(value: 0)
    database.asyncWriteWithoutTransaction { _ in gate.wait() }
    return { gate.signal() }
  }

  func untilWaiting(_ count: Int) async {
    while waitingCount < count { await Task.yield() }
  }

  /// Runs SQL on the connection that writes, outside a transaction.
  func run(_ sql: String) async throws {
    try await database.writeWithoutTransaction { try $0.execute(sql: sql) }
  }

  func number(_ sql: String) async throws -> Int {
    try await database.writeWithoutTransaction { try Int.fetchOne($0, sql: sql) ?? 0 }
  }
}

let answer = OnceAnswer(code: .ok, body: Array("done".utf8))
#endif
