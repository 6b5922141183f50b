// SPDX-License-Identifier: Apache-2.0

import LongLinkOnce
import LongLinkServer

#if SQLite
import Foundation
import GRDB
import LongLinkOnceSQLite
#endif

/// The payments of one server of the soak: requests that run once. Each has a random receipt, which
/// is its answer.
///
/// Of a charge, the handler makes the effect, and the server then keeps the answer. A transfer has
/// both in one transaction, and runs again if a killed server leaves its end unknown.
///
/// The records are in an SQLite file beside the server's ledger. Without the trait `SQLite` they
/// are in memory, and a transfer is made as a charge is.
struct SoakPayments: Sendable {
  /// The receipts of charges are lines of the ledger.
  private let ledger: SoakLedger
  #if SQLite
  private let store: SQLiteOnceStore
  #endif

  /// What the body of a payment's response is.
  static func body(of receipt: UInt64) -> [UInt8] { SoakRecord.bytes(of: receipt) }

  static func receipt(in body: [UInt8]) -> UInt64? {
    body.count == 8 ? SoakRecord.key(in: body) : nil
  }

  /// Adds the routes of payments to a server.
  func install(on server: LongLinkServer) {
    server.route(SoakType.charge) { request in
      let (key, _) = try await begin(request)
      return charge(key)
    }
    server.route(SoakType.transfer) { request in
      let (key, once) = try await begin(request)
      return try await transfer(key, once)
    }
    #if SQLite
    server.runOnce(SoakType.transfer, unknownEnd: .runAgain)
    #endif
  }

  /// Notes that a payment runs, and takes its time.
  private func begin(_ request: InboundRequest) async throws -> (UInt64, OnceContext) {
    guard let once = request.once, request.body.count > 8, once.key.count == 8,
      let key = SoakRecord.key(in: once.key), SoakRecord.key(in: request.body) == key
    else { throw Rejection(.malformed, "the body and the key do not match, or it may run twice") }
    ledger.append(SoakRecord(key: key, .executed))
    try await request.clock.sleep(for: .milliseconds(Int(request.body[8])))
    return (key, once)
  }

  private func charge(_ key: UInt64) -> [UInt8] {
    let receipt = SoakPayments.newReceipt()
    ledger.append(SoakRecord(key: key, .paid(receipt)))
    return SoakPayments.body(of: receipt)
  }

  /// It fits into a line of a ledger.
  private static func newReceipt() -> UInt64 { .random(in: 0..<1 << 48) }
}

#if SQLite
extension SoakPayments {
  static let storeText = "files, which outlive their servers"

  /// Calls a function with the payments of a server that has this ledger.
  static func run(
    ledger: SoakLedger, path: String,
    _ body: (SoakPayments, OnceConfiguration) async throws -> Void
  ) async throws {
    let store = try SQLiteOnceStore(path: path + suffix)
    try await store.database.write { db in
      try db.execute(
        sql: "CREATE TABLE IF NOT EXISTS payments (key BLOB NOT NULL, body BLOB NOT NULL)")
    }
    let payments = SoakPayments(ledger: ledger, store: store)
    try await body(payments, OnceConfiguration(store: store))
    try await store.close()
  }

  private static let suffix = ".sqlite"

  private func transfer(_ key: UInt64, _ once: OnceContext) async throws -> [UInt8] {
    let body = SoakPayments.body(of: SoakPayments.newReceipt())
    try await store.database.write { db in
      try db.execute(
        sql: "INSERT INTO payments (key, body) VALUES (?, ?)",
        arguments: [Data(SoakRecord.bytes(of: key)), Data(body)])
      try once.complete(with: body) { try store.complete($0, with: $1, in: db) }
    }
    return body
  }

  /// What the file beside a ledger says: the transfers that were made, and the answers that are
  /// kept. Its server has ended.
  static func records(beside path: String) throws -> [SoakRecord] {
    guard FileManager.default.fileExists(atPath: path + suffix) else { return [] }
    return try DatabaseQueue(path: path + suffix).read { db in
      try records(db, "SELECT key, body FROM payments") { .paid($0) }
        + records(db, "SELECT key, body FROM longlink_once_records WHERE code = 200") { .kept($0) }
    }
  }

  private static func records(
    _ db: Database, _ query: String, _ event: (UInt64) -> SoakRecord.Event
  ) throws -> [SoakRecord] {
    try Row.fetchAll(db, sql: query).map { row in
      guard let key = SoakRecord.key(in: row["key"] as Data),
        let receipt = receipt(in: [UInt8](row["body"] as Data))
      else { throw DatabaseError(message: "a row of payments is damaged") }
      return SoakRecord(key: key, event(receipt))
    }
  }
}
#else
extension SoakPayments {
  static let storeText = "memory, lost with a server; the trait SQLite would keep them in files"

  /// Calls a function with the payments of a server that has this ledger.
  static func run(
    ledger: SoakLedger, path: String,
    _ body: (SoakPayments, OnceConfiguration) async throws -> Void
  ) async throws {
    try await body(SoakPayments(ledger: ledger), OnceConfiguration(store: .memory()))
  }

  private func transfer(_ key: UInt64, _ once: OnceContext) async throws -> [UInt8] { charge(key) }

  static func records(beside path: String) throws -> [SoakRecord] { [] }
}
#endif
