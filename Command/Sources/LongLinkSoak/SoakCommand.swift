// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// The command `longlink-soak`.
@main
struct SoakCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "longlink-soak",
    abstract: "Tests clients and servers under kills, freezes and partitions.",
    discussion: """
      Starts server and client processes that use real sockets, keeps a constant load on them, \
      and injects faults by a plan that the seed determines. Meanwhile clients renew credentials \
      every two seconds and move to other connections; each reads a stream that comes back, and \
      servers send broadcasts. Some requests are payments, which run once: their records are in \
      SQLite files if the package has its trait SQLite. At the end it compares the outcomes that \
      callers saw with what handlers did and records have, and the broadcasts and items that came \
      with those that were sent, and prints a table. If they differ, it exits with code 1 and \
      keeps its ledgers.
      """,
    subcommands: [SoakRunCommand.self, SoakServerCommand.self, SoakClientsCommand.self],
    defaultSubcommand: SoakRunCommand.self)
}

/// The default subcommand of `longlink-soak`.
struct SoakRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Runs a soak (the default).")

  @Option(
    parsing: .unconditional, help: "The duration in minutes, at least 0.2 (default: 10).",
    transform: SoakRunCommand.minutes)
  var minutes: Duration = .seconds(600)

  @Option(help: "The number of clients (default: 200).", transform: Values.count)
  var clients = 200

  @Option(help: "The number of client processes (default: 2).", transform: Values.count)
  var clientProcesses = 2

  @Option(help: "The number of servers, at least 2 (default: 2).", transform: Values.count)
  var servers = 2

  @Option(
    parsing: .unconditional,
    help: "The average number of requests per second of each client (default: 2).",
    transform: SoakRunCommand.rate)
  var rate = 2.0

  @Option(help: "The seed of the fault plan and the load (default: 1).")
  var seed: UInt64 = 1

  func validate() throws {
    if servers < 2 { throw ValidationError("A soak needs 2 servers: the first is never killed.") }
    if clientProcesses > clients { throw ValidationError("There are more processes than clients.") }
  }

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let options = SoakOptions(
      total: minutes, clients: clients, clientProcesses: clientProcesses, servers: servers,
      rate: rate, seed: seed)
    let soak = try Soak(options)
    let result: SoakResult
    do {
      result = try await SoakRunCommand.run(soak, until: signals)
    } catch let failure as ChildFailure {
      Output.error("the soak has failed: \(failure); its ledgers are in \(soak.folder.path)")
      throw ExitCode(ExitStatus.failure)
    } catch {
      // A signal has stopped it: the ledgers are of no use.
      try? FileManager.default.removeItem(at: soak.folder)
      throw error
    }
    let summary = SoakSummary(result: result, options: options)
    for line in summary.lines { try Output.line(line) }
    guard summary.holds else {
      Output.error("the soak has failed; its ledgers are in \(soak.folder.path)")
      throw ExitCode(ExitStatus.failure)
    }
    try FileManager.default.removeItem(at: soak.folder)
  }

  private static func run(_ soak: Soak, until signals: TerminationSignals) async throws
    -> SoakResult
  {
    try await withThrowingTaskGroup(of: SoakResult?.self) { group in
      group.addTask { try await soak.run() }
      group.addTask {
        if let signal = await signals.first() { throw ExitCode.signal(signal) }
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next()!!
    }
  }

  private static func minutes(_ text: String) throws -> Duration {
    guard let minutes = Double(text), minutes >= 0.2, minutes <= 100_000 else {
      throw ValidationError("'\(text)' is not a number of minutes from 0.2 to 100000.")
    }
    return .seconds(minutes * 60)
  }

  private static func rate(_ text: String) throws -> Double {
    guard let rate = Double(text), rate > 0, rate <= 1000 else {
      throw ValidationError("'\(text)' is not a rate above 0 and up to 1000.")
    }
    return rate
  }
}
