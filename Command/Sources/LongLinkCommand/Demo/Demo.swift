// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages
import Synchronization

/// The steps of `longlink demo`, in order.
final class Demo: Sendable {
  static let heartbeat = Heartbeat(interval: .seconds(1), timeout: .milliseconds(500))

  let timeline: Timeline
  private let server = Mutex<ChildProcess?>(nil)

  init(timeline: Timeline) {
    self.timeline = timeline
  }

  /// Runs all steps. However it ends, no server process is left.
  func run() async throws {
    defer { server.withLock { $0 }?.send(SIGKILL) }
    try timeline.chapter("A server in its own process")
    let port = try await startServer(port: 0)
    let client = try await connect(to: port)
    do {
      try await showRequests(client)
      try await showOrder(client)
      try await showPushes(client)
      try await showStream(client)
      try await showStop(client)
      try await showErrorInBand(client)
      try await showCancel(client)
      try await showDeadline(client)
      try await showKill(client, port: port)
      try await showFreeze(client)
      try await showEnd(client)
      try await showSecurity()
      try await showClients()
      try await showOnce()
      try timeline.end()
    } catch {
      await client.close()
      throw error
    }
  }

  /// The running server process.
  var process: ChildProcess {
    get throws {
      guard let process = server.withLock({ $0 }) else { throw DemoFailure("there is no server") }
      return process
    }
  }

  func startServer(port: UInt16, _ options: [String] = []) async throws -> UInt16 {
    let process = try ChildProcess(
      [
        "serve", "--port", "\(port)", "--heartbeat", "\(Demo.heartbeat.interval / .seconds(1))",
        "--heartbeat-timeout", "\(Demo.heartbeat.timeout / .seconds(1))", "--for-demo",
      ] + options)
    server.withLock { $0 = process }
    let actual = try await process.listeningPort()
    try timeline.tell("process \(process.number) listens on 127.0.0.1:\(actual)")
    return actual
  }

  private func connect(to port: UInt16) async throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.heartbeat = Demo.heartbeat
    configuration.reconnect = ReconnectPolicy(
      afterClose: .milliseconds(200), afterLostHeartbeat: .milliseconds(500),
      afterRefused: .milliseconds(200), cap: .milliseconds(500))
    configuration.name = "longlink demo"
    // The timeline itself reports lost connections.
    configuration.logger.logLevel = .error
    let client = try LongLinkClient(configuration)
    try await client.connect()
    try timeline.tell("connected; a ping takes \(try await client.ping().inMilliseconds)")
    return client
  }

  /// Fetches the server's counters.
  func stats(_ client: LongLinkClient) async throws -> StatsReply {
    try await client.request(DemoRoutes.stats, EmptyBody())
  }

  /// Polls the server's counters until `isReached` holds, for at most five seconds.
  func stats(
    _ client: LongLinkClient, until isReached: (StatsReply) -> Bool
  ) async throws -> StatsReply {
    let limit = ContinuousClock.now + .seconds(5)
    while true {
      let stats = try await stats(client)
      if isReached(stats) || ContinuousClock.now > limit { return stats }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Waits for the response to a request, or its error.
  func outcome(of task: RequestTask<[UInt8]>) async -> Result<[UInt8], LongLinkError> {
    do {
      return .success(try await task.value)
    } catch {
      return .failure(error)
    }
  }

  /// Waits for a request that should fail.
  func failure(of task: RequestTask<[UInt8]>, _ what: String) async throws -> LongLinkError {
    switch await outcome(of: task) {
    case .success: throw DemoFailure("\(what) was answered")
    case .failure(let error): return error
    }
  }

  func startSleep(
    _ client: LongLinkClient, _ duration: Duration, options: RequestOptions = RequestOptions()
  ) -> RequestTask<[UInt8]> {
    let milliseconds = UInt32(duration / .milliseconds(1))
    return client.submit(
      DemoRoutes.sleep, SleepRequest(milliseconds: milliseconds), options: options)
  }
}
