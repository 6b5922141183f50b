// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkDemoMessages
import Testing

/// Server processes that are frozen with SIGSTOP: their sockets stay open, and say nothing.
@Suite(.timeLimit(.minutes(15))) struct FreezeTests {
  /// What a client does while its server is frozen.
  enum Load: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case nothing
    case requests
    case largeRequests = "large requests"
    case pushes
    case largePushes = "large pushes"

    var testDescription: String { rawValue }

    /// The next thing to write; the pause keeps the amount within bounds.
    func write(_ client: LongLinkClient) async {
      switch self {
      case .nothing: break
      case .requests: _ = client.submit(1, [UInt8](repeating: 1, count: 64))
      case .largeRequests: _ = client.submit(1, [UInt8](repeating: 2, count: 262_144))
      // A push that cannot be taken any more is no subject here.
      case .pushes: try? await client.push(9, [UInt8](repeating: 3, count: 64))
      case .largePushes: try? await client.push(9, [UInt8](repeating: 4, count: 262_144))
      }
      try? await client.loop.sleep(for: .milliseconds(20))
    }
  }

  private static let heartbeat = Heartbeat(interval: .seconds(1), timeout: .milliseconds(500))
  /// What a busy machine may take to run the threads and processes of these tests. Simulations hold
  /// the exact bound; here it is enough that the kernel's own, 15 minutes on Linux, is far away.
  private static let slack = Duration.seconds(60)

  private static func client(of server: RunningServer) throws -> LongLinkClient {
    let port = try #require(UInt16(server.port))
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.heartbeat = heartbeat
    // Requests outlast the silence, so that nothing but the heartbeat ends it.
    configuration.timeouts.request = .seconds(90)
    // Nor does what waits during it, on a machine that is slow to look.
    configuration.limits.maxWaitingBytes = 1 << 30
    configuration.logger.logLevel = .critical
    return try LongLinkClient(configuration)
  }

  @Test(arguments: Load.allCases)
  func `a frozen server is found within the interval and the timeout`(_ load: Load) async throws {
    let server = try await RunningServer("--heartbeat", "1", "--heartbeat-timeout", "0.5")
    let client = try FreezeTests.client(of: server)
    try await client.connect()
    let clock = client.loop.clock
    // On the loop, so that a busy pool does not delay the look at the clock.
    let changes = client.states()
    let found = Task(executorPreference: client.loop) {
      var wasConnected = false
      for await state in changes {
        if case .connected = state { wasConnected = true } else if wasConnected { break }
      }
      return clock.now
    }
    let writing = Task(executorPreference: client.loop) {
      while !Task.isCancelled { await load.write(client) }
    }
    let lastAnswer = clock.now
    _ = try await client.request(1, [UInt8](repeating: 0, count: 8))
    server.tool.send(SIGSTOP)
    let frozen = clock.now
    let end = await withTaskCancellationHandler {
      await found.value
    } onCancel: {
      found.cancel()
    }
    #expect(lastAnswer.duration(to: end) >= FreezeTests.heartbeat.interval)
    let bound = FreezeTests.heartbeat.interval + FreezeTests.heartbeat.timeout
    #expect(frozen.duration(to: end) <= bound + FreezeTests.slack)
    let endings = await client.counters().endings
    #expect(
      endings.keys.allSatisfy { ["heartbeatLost", "stalledPeer"].contains($0) }, "\(endings)")
    writing.cancel()
    await writing.value
    // It is as good as before: its connections of then have ended, or end without harm.
    server.tool.send(SIGCONT)
    #expect(try await client.request(1, Array("again".utf8)) == Array("again".utf8))
    await client.close(within: .zero)
  }

  @Test func `a frozen client is found by its server, and its work is stopped`() async throws {
    let server = try await RunningServer("--heartbeat", "1", "--heartbeat-timeout", "0.5")
    let client = try await server.startSleep(milliseconds: 60_000)
    let clock = ContinuousClock()
    client.send(SIGSTOP)
    let frozen = clock.now
    while try await server.stats().requestsCancelled == 0 { try Task.checkCancellation() }
    let bound = FreezeTests.heartbeat.interval + FreezeTests.heartbeat.timeout
    #expect(clock.now - frozen <= bound + FreezeTests.slack)
  }

  @Test func `a server that was frozen reads waiting bytes before it declares a client dead`()
    async throws
  {
    let server = try await RunningServer("--heartbeat", "4", "--heartbeat-timeout", "2")
    let client = try RawClient(port: server.port).connection
    defer { close(client.descriptor) }
    // On one thread: were the client late before the freeze, the server would be right to end it.
    let kinds = await onThread {
      client.write(ScriptedConnection.frame(kind: 0, tag: 1, serial: 50, body: [1]))
      var kinds = [client.read()]
      server.tool.send(SIGSTOP)
      // Past the bound: when it goes on, its timers have run out.
      Thread.sleep(forTimeInterval: 7)
      client.write(ScriptedConnection.frame(kind: 0, tag: 1, serial: 51, body: [2]))
      server.tool.send(SIGCONT)
      repeat { kinds.append(client.read()) } while kinds.last == 8
      return kinds
    }
    // A ping may come before the second answer; a goaway or the end must not.
    #expect(kinds.first == 1)
    #expect(kinds.last == 1, "\(kinds)")
  }
}
