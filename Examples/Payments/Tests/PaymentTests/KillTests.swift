// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import LongLink
import LongLinkServer
import Payments
import Testing

@testable import PaymentServer

/// A server that is killed while it takes a payment.
@Suite(.timeLimit(.minutes(2))) struct KillTests {
  /// When the first server is killed.
  enum Moment: CaseIterable {
    case beforeEffect, betweenEffectAndAnswer
  }

  @Test(arguments: Moment.allCases)
  func `a payment is made once, and answered after the restart`(_ moment: Moment) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pay-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }

    var configuration = ClientConfiguration(servers: [.unix(path: "\(folder)/socket")])
    configuration.reconnect.afterRefused = .milliseconds(20)
    configuration.reconnect.cap = .milliseconds(100)
    configuration.logger.logLevel = .critical
    let client = try LongLinkClient(configuration)
    let ticket = try #require(OnceTicket(key: Array("order 17".utf8)))
    let payment = PaymentsClient(client).submitPay(
      PayRequest(account: "ann", cents: 500),
      options: RequestOptions(timeout: .seconds(100), ticket: ticket))

    let hasEffect = moment == .betweenEffectAndAnswer
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [folder = folder as String, hasEffect = hasEffect as Bool] in
      let server = try KillTests.server(in: folder).server
      server.intercept { request, next in
        if hasEffect { _ = try await next(request) }
        kill(getpid(), SIGKILL)
        return try await next(request)
      }
      try await server.start()
      try await Task.sleep(for: .seconds(100))
    }

    let (ledger, server) = try KillTests.server(in: folder)
    try await server.start()
    #expect(try await payment.value == Receipt(number: 1))
    #expect(ticket.isReplayed == hasEffect)
    let payments = try await ledger.store.database.read { db in
      try Row.fetchAll(db, sql: "SELECT account, cents FROM payment")
    }
    #expect(payments == [["account": "ann", "cents": 500]])
    await client.close()
    await server.shutDown()
    try await ledger.store.close()
  }

  private static func server(
    in folder: String
  ) throws -> (ledger: Ledger, server: LongLinkServer) {
    let ledger = try Ledger(file: "\(folder)/payments.sqlite")
    return (ledger, try ledger.server(at: .unix(path: "\(folder)/socket")))
  }

  @Test func `a payment that may run twice is refused`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pay-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (ledger, server) = try KillTests.server(in: folder)
    try await server.start()
    let client = try LongLinkClient(to: .unix(path: "\(folder)/socket"))
    let error = await #expect(throws: LongLinkError.self) {
      try await PaymentsClient(client).pay(
        PayRequest(account: "ann", cents: 500), options: RequestOptions(retry: .idempotent))
    }
    #expect(error?.response == 1_000)
    await client.close()
    await server.shutDown()
    try await ledger.store.close()
  }
}
