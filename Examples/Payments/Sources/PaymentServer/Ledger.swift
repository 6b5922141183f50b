// SPDX-License-Identifier: Apache-2.0

import GRDB
import LongLinkOnce
import LongLinkOnceSQLite
import LongLinkServer
import Payments

/// Its payments are in the store's own file, so that one transaction writes a payment and its record.
struct Ledger: PaymentsService {
  let store: SQLiteOnceStore

  init(file: String) throws {
    store = try SQLiteOnceStore(path: file)
    try store.database.write { db in
      try db.execute(
        sql: "CREATE TABLE IF NOT EXISTS payment (number INTEGER PRIMARY KEY, account, cents)")
    }
  }
  func pay(_ request: PayRequest, context: InboundRequest) async throws -> Receipt {
    guard let once = context.once else { throw Rejection(1_000, "use retry: .once") }
    return try await store.database.write { db in
      try db.execute(
        sql: "INSERT INTO payment (account, cents) VALUES (?, ?)",
        arguments: [request.account, Int64(clamping: request.cents)])
      let receipt = Receipt(number: UInt64(db.lastInsertedRowID))
      try once.complete(with: receipt) { try store.complete($0, with: $1, in: db) }
      return receipt
    }
  }
  func server(at endpoint: Endpoint) throws -> LongLinkServer {
    var configuration = ServerConfiguration(listen: [endpoint])
    configuration.once = OnceConfiguration(store: store)
    let server = try LongLinkServer(configuration)
    server.register(payments: self)
    // A process that was killed before the commit has changed nothing.
    server.runOnce(PaymentsMethods.pay.type, unknownEnd: .runAgain)
    return server
  }
}
