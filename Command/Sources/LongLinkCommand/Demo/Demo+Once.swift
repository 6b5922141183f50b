// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

#if SQLite
import LongLinkOnceSQLite
#endif

/// The steps in which payments run once, whatever is cut off.
extension Demo {
  /// A payment, and the ticket under which it is made.
  private struct Payment {
    let key: String
    let ticket: OnceTicket
    let task: RequestTask<LongLinkDemoMessages.OnceReply>
  }

  func showOnce() async throws {
    try timeline.chapter("1,000 payments run once each: \(Demo.troubles)")
    let folder = try DemoFolder()
    let effects = "\(folder.path)/effects"
    let options = ["--once", Demo.store(in: folder), "--once-effects", effects]
    if !Demo.survivesKill {
      try timeline.tell("answers are kept in memory, because this was built without SQLite")
    }
    let port = try await startServer(port: 0, options)
    let loop = EventLoop.shared
    let relay = try await loop.run {
      Result { LoopBound(try Relay(to: .ipv4(127, 0, 0, 1, port: port), on: loop), on: loop) }
    }.get()
    do {
      let client = try await payer(through: loop.run { relay.value.port } ?? 0)
      let payments = try Demo.pay(1_000, over: client)
      let answered = try await answers(to: payments) { number in
        if number == 600, Demo.survivesKill {
          try await restart(on: port, options)
        } else if number.isMultiple(of: 200), number > 0 {
          await loop.run { relay.value.cut() }
          try timeline.tell("the connection is cut after \(number) payments")
        }
      }
      await client.close()
      try compare(answered, with: effects)
    } catch {
      await loop.run { relay.value.close() }
      throw error
    }
    await loop.run { relay.value.close() }
    let server = try process
    server.send(SIGTERM)
    _ = await server.exitCode()
    try await showRecords(in: folder)
  }

  private func payer(through port: UInt16) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.reconnect = ReconnectPolicy(
      afterClose: .milliseconds(50), afterLostHeartbeat: .milliseconds(50),
      afterRefused: .milliseconds(50), cap: .milliseconds(200))
    // All that is in flight is lost each time, and sent again.
    configuration.retry.budget = 10_000
    configuration.logger.logLevel = .critical
    return try LongLinkClient(configuration)
  }

  private static func pay(_ count: Int, over client: LongLinkClient) throws -> [Payment] {
    try (1...count).map { number in
      let key = "payment \(number)"
      guard let ticket = OnceTicket(key: Array(key.utf8)) else {
        throw DemoFailure("'\(key)' is no key")
      }
      let task = client.submit(
        DemoRoutes.once, OnceRequest(key: Array(key.utf8), delayMilliseconds: 20),
        options: RequestOptions(timeout: .seconds(30), ticket: ticket))
      return Payment(key: key, ticket: ticket, task: task)
    }
  }

  private func restart(on port: UInt16, _ options: [String]) async throws {
    let killed = try process
    killed.send(SIGKILL)
    try timeline.tell("SIGKILL to process \(killed.number) after 600 payments")
    _ = await killed.exitCode()
    _ = try await startServer(port: port, options)
  }

  /// Waits for all payments, and returns the keys of those with an answer. Calls `trouble` with the
  /// number of those that have ended.
  private func answers(
    to payments: [Payment], trouble: (Int) async throws -> Void
  ) async throws -> [String] {
    var answered: [String] = []
    var (unknown, replayed) = (0, 0)
    for (number, payment) in payments.enumerated() {
      try await trouble(number)
      do {
        let runs = try await payment.task.value.runs
        guard runs == 1 else { throw DemoFailure("\(payment.key) ran \(runs) times") }
        answered.append(payment.key)
        if payment.ticket.isReplayed { replayed += 1 }
      } catch let error as LongLinkError where error.response == .gone && error.delivery == .sent {
        unknown += 1
      }
    }
    try timeline.check(
      answered.count + unknown == payments.count && (unknown == 0 || Demo.survivesKill),
      "\(answered.count) payments were answered, \(replayed) of them from a record",
      otherwise: "\(unknown) have an unknown end")
    if Demo.survivesKill {
      try timeline.tell(
        "\(unknown) ran when the server was killed: 410, delivery sent, and they do not run again")
    }
    return answered
  }

  /// Compares the answers with what the handlers have written into a file.
  private func compare(_ answered: [String], with effects: String) throws {
    let text = try FileProblem.naming(effects) {
      try String(contentsOfFile: effects, encoding: .utf8)
    }
    let keys = text.split(separator: "\n").map(String.init)
    let different = Set(keys)
    try timeline.check(
      keys.count == different.count, "the handlers had \(keys.count) effects, none twice",
      otherwise: "\(keys.count - different.count) are there twice")
    try timeline.check(
      different.isSuperset(of: answered),
      "each of the \(answered.count) answered payments has its effect",
      otherwise: "\(Set(answered).subtracting(different).count) have none")
  }

  // MARK: - The store

  #if SQLite
  private static let survivesKill = true
  private static let troubles = "connections are cut, and the server is killed"

  private static func store(in folder: DemoFolder) -> String { "\(folder.path)/answers.sqlite" }

  private func showRecords(in folder: DemoFolder) async throws {
    do {
      let store = try SQLiteOnceStore(path: Demo.store(in: folder))
      let count = store.recordCount
      try await store.close()
      try timeline.check(
        count == 1_000, "the file has \(count) records, one for each payment",
        otherwise: "it has \(count)")
    } catch let error as SQLiteOnceError {
      throw DemoFailure("\(error)")
    }
  }
  #else
  private static let survivesKill = false
  private static let troubles = "connections are cut"

  private static func store(in folder: DemoFolder) -> String { "memory" }
  private func showRecords(in folder: DemoFolder) async throws {}
  #endif
}
