// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// Clients of the soak, in one process. After a line from its parent it ends with its last request.
struct SoakClientsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clients", abstract: "Runs some clients of a soak.", shouldDisplay: false)

  @Option var first = 0
  @Option(transform: Values.count) var clients = 1
  /// Lists of `HOST:PORT`, separated by commas: each client gets one list, in turn.
  @Option var servers: [String]
  @Option var seed: UInt64 = 1
  @Option var rate = 2.0
  @Option var ledger: String

  func run() async throws {
    Output.logToStandardError()
    // Any line from the parent means: stop.
    let (stop, told) = AsyncStream.makeStream(of: Void.self)
    ParentWatch.start { told.yield() }
    let ledger = try SoakLedger(path: ledger)
    let lists = try servers.map(SoakClientsCommand.endpoints)
    let loop = try EventLoop(name: "clients")
    let all = try (0..<clients).map { index in
      try SoakClient(
        number: first + index, seed: seed, servers: lists[index % lists.count], ledger: ledger,
        on: loop)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in all {
        group.addTask { [rate] in await client.run(rate: rate) }
      }
      let reporting = Task {
        while !Task.isCancelled {
          _ = try await SoakClientsCommand.printReport(of: all)
          try await Task.sleep(for: .milliseconds(500))
        }
      }
      for await _ in stop { break }
      for client in all { await client.stop() }
      try await group.waitForAll()
      reporting.cancel()
      _ = await reporting.result
    }
    // Each request ends within its deadline; otherwise the parent reports the problem.
    while try await SoakClientsCommand.printReport(of: all).open > 0 {
      try await Task.sleep(for: .milliseconds(100))
    }
    for client in all { await client.close() }
  }

  private static func printReport(of clients: [SoakClient]) async throws -> SoakReport {
    var report = SoakReport()
    for client in clients { report += await client.report }
    try Output.line(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
    return report
  }

  private static func endpoints(_ text: String) throws -> [Endpoint] {
    try text.split(separator: ",").map { part in
      guard let colon = part.lastIndex(of: ":") else {
        throw ValidationError("'\(part)' is not HOST:PORT.")
      }
      let port = try Values.port(String(part[part.index(after: colon)...]))
      return .host(try Values.host(String(part[..<colon])), port: port)
    }
  }
}
