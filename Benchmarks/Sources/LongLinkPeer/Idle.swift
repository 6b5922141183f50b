// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLink
import Logging

/// Opens many connections, leaves them idle, and finally lets the server push to all of them.
struct Idle: AsyncParsableCommand {
  @Option(help: "The server's port on the loopback address.")
  var port: UInt16
  @Option(help: "Connections.")
  var connections = 10_000
  @Option(help: "Seconds for which they stay idle.")
  var seconds = 35.0
  @Flag(help: "Secure the connections with TLS.")
  var tls = false

  /// The number of concurrent connects.
  private static let atOnce = 64

  func run() async throws {
    let loop = try EventLoop(name: "bench")
    let arrived = RequestCount()
    let (allHaveArrived, end) = AsyncStream.makeStream(of: Void.self)
    let before = Usage.residentMemory
    let begin = Usage.nanoseconds()
    let clients = try await connect(on: loop)
    let connected = Usage.nanoseconds()
    var outcome = IdleOutcome(connections: clients.count)
    outcome.connectSeconds = Double(connected - begin) / 1e9
    outcome.memory = Usage.residentMemory - before
    try outcome.print()

    let first = Usage.now
    try await Task.sleep(for: .seconds(seconds))
    let last = Usage.now
    outcome.cpuShare = (last.cpu - first.cpu) / (Double(last.time - first.time) / 1e9)
    for client in clients where await client.counters().connects != 1 {
      Meter.fail("a connection was lost")
    }
    try outcome.print()

    let count = UInt64(clients.count)
    for client in clients {
      client.onPush(Idle.news) { _ in
        arrived.oneMoreOnOneThread()
        if arrived.value == count { end.finish() }
      }
    }
    let asked = Usage.nanoseconds()
    _ = try await clients[0].request(Idle.tellAll, [])
    for await _ in allHaveArrived {}
    withExtendedLifetime(clients) {}
    outcome.pushSeconds = Double(Usage.nanoseconds() - asked) / 1e9
    try outcome.print()
    Foundation.exit(0)
  }

  /// The type of the request that makes the server push to all, and of the pushes.
  static let tellAll: MessageType = 3
  static let news: MessageType = 4

  private func connect(on loop: EventLoop) async throws -> [LongLinkClient] {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.logger.logLevel = .critical
    configuration.security = try Secured.client(tls)
    let clients = try (0..<connections).map { _ in try LongLinkClient(configuration, on: loop) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, client) in clients.enumerated() {
        if index >= Idle.atOnce { try await group.next() }
        group.addTask { try await client.connect() }
      }
      try await group.waitForAll()
    }
    return clients
  }
}
