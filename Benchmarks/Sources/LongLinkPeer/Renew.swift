// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLink
import Logging

/// Keeps connections open whose credentials the clients renew.
struct Renew: AsyncParsableCommand {
  @Option(help: "The server's port on the loopback address.")
  var port: UInt16
  @Option(help: "Connections.")
  var connections = 1_000
  @Option(help: "Seconds for which the renewals are counted.")
  var seconds = 10.0

  func run() async throws {
    let loop = try EventLoop(name: "bench")
    let asked = RequestCount()
    var clients: [LongLinkClient] = []
    for number in 0..<connections {
      var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
      let credential = Principals.credential(number)
      configuration.identity.credential = {
        asked.oneMoreOnOneThread()
        return credential
      }
      configuration.logger.logLevel = .critical
      clients.append(try LongLinkClient(configuration, on: loop))
      try await clients[number].connect()
    }
    var begin = try await outcome(of: clients)
    (begin.renewals, begin.allocations) = (asked.value, Usage.now.allocations)
    try begin.print()
    try await Task.sleep(for: .seconds(seconds))
    let (renewals, allocations) = (asked.value, Usage.now.allocations)
    var end = try await outcome(of: clients)
    (end.renewals, end.allocations) = (renewals, allocations)
    try end.print()
    withExtendedLifetime(clients) {}
    Foundation.exit(0)
  }

  /// The frames of all clients so far.
  private func outcome(of clients: [LongLinkClient]) async throws -> RenewOutcome {
    var outcome = RenewOutcome()
    for client in clients {
      let counters = await client.counters()
      guard counters.connects == 1 else { Meter.fail("a connection was lost") }
      outcome.answers += counters.connections.framesReceived
    }
    return outcome
  }
}
