// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Logging
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Many requests over real sockets that break, in a process of its own, whose memory and
/// descriptors can be told from those of other tests.
///
/// `LONGLINK_BREAKING_REQUESTS` sets how many; 20,000 otherwise.
@Suite struct BreakingConnectionTests {
  @Test(.unless(BreakingRun.problem))
  func `many requests over a connection that breaks end once each`() async {
    await #expect(processExitsWith: .success) {
      do {
        try await BreakingRun().run(requests: BreakingRun.requestsAsked ?? 20_000)
      } catch {
        Issue.record(error)
      }
    }
  }
}

/// A load of 128 requests in flight, against a server that answers in random order and drops the
/// connection at one request in a thousand.
private struct BreakingRun {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// What the process holds.
  struct Footprint {
    var bytes: Int
    var descriptors: Int
  }

  /// Why it cannot run here; nil where it can.
  static var problem: String? {
    let tells = unsafe access("/proc/self/statm", R_OK) == 0
    return tells ? nil : "the system does not tell what a process holds in /proc/self/statm"
  }

  static var requestsAsked: Int? {
    guard let text = unsafe getenv("LONGLINK_BREAKING_REQUESTS") else { return nil }
    return unsafe Int(String(cString: text))
  }

  final class Count: Sendable {
    private let state: Atomic<Int>

    init(_ value: Int) { state = Atomic(value) }

    /// Counts one more and returns the number before.
    func increment() -> Int { state.add(1, ordering: .relaxed).oldValue }
    var value: Int { state.load(ordering: .relaxed) }
  }

  /// How often the server's handler ran each request.
  final class Executions: Sendable {
    private let state: Mutex<[Int]>

    init(count: Int) {
      state = Mutex(Array(repeating: 0, count: count))
    }

    func add(_ number: Int) { state.withLock { $0[number] += 1 } }
    var counts: [Int] { state.withLock { $0 } }
  }

  func run(requests: Int) async throws {
    // The first round makes what the process keeps: threads of the runtime, memory of the
    // allocator.
    try await load(5_000)
    let before = try Self.footprint()
    try await load(requests)
    var after = try Self.footprint()
    let limit = ContinuousClock.now + .seconds(60)
    while after.descriptors > before.descriptors, ContinuousClock.now < limit {
      // What is released by the last task of a round may take its time.
      await Task.yield()
      after = try Self.footprint()
    }
    try Self.require(after.descriptors <= before.descriptors, "\(before), then \(after)")
    try Self.require(after.bytes < before.bytes + 8_000_000, "\(before), then \(after)")
  }

  private func load(_ requests: Int) async throws {
    let executions = Executions(count: requests)
    let loop = try EventLoop(name: "client")
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    let server = try LongLinkServer(configuration)
    server.route(1) { request in
      let number = request.body.reduce(0) { $0 << 8 | Int($1) }
      executions.add(number)
      if Int.random(in: 0..<1_000) == 0 { request.peer.close() }
      try await request.clock.sleep(for: .microseconds(Int.random(in: 0...3_000)))
      return request.body
    }
    try await server.start()
    var clientConfiguration = ClientConfiguration(
      servers: [server.endpoint])
    clientConfiguration.logger.logLevel = .critical
    clientConfiguration.timeouts.request = .seconds(300)
    clientConfiguration.reconnect = ReconnectPolicy(
      afterClose: .milliseconds(2),
      afterLostHeartbeat: .milliseconds(2),
      afterRefused: .milliseconds(2),
      cap: .milliseconds(20)
    )
    let client = try LongLinkClient(clientConfiguration, on: loop)

    let succeeded = try await ask(client, requests)
    await client.close(within: .seconds(30))
    await server.shutDown(within: .seconds(30))
    try await judge(client, server, succeeded, executions)
    loop.shutDown()
  }

  /// Asks with 128 at once; returns how many succeeded.
  private func ask(_ client: LongLinkClient, _ requests: Int) async throws -> Int {
    let next = Count(0)
    let succeeded = Count(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<128 {
        group.addTask {
          while true {
            let number = next.increment()
            guard number < requests else { return }
            let body = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            do {
              let answer = try await client.request(1, body)
              try Self.require(answer == body, "\(number) got the answer \(answer)")
              _ = succeeded.increment()
            } catch let error as LongLinkError {
              try Self.require(
                error.delivery == .sent && error.code == .connectionLost,
                "\(error)"
              )
            }
          }
        }
      }
      try await group.waitForAll()
    }
    return succeeded.value
  }

  private func judge(
    _ client: LongLinkClient,
    _ server: LongLinkServer,
    _ succeeded: Int,
    _ executions: Executions
  ) async throws {
    let ran = executions.counts
    try Self.require(ran.allSatisfy { $0 <= 1 }, "a request ran twice")
    let (mine, theirs) = (await client.counters(), await server.counters())
    let requests = mine.requests
    try Self.require(requests.submitted == ran.count, "\(requests)")
    try Self.require(requests.succeeded == succeeded, "\(requests)")
    try Self.require(requests.succeeded + requests.lost == requests.submitted, "\(requests)")
    // Of a few thousand none may be dropped, by chance; of 20,000 that has odds of one in 10^8.
    let isBroken = requests.lost > 0 && mine.connects > 1
    try Self.require(isBroken || ran.count < 20_000, "nothing was lost: \(requests)")
    try Self.require(mine.requestsOpen == 0 && theirs.requestsRunning == 0, "some are open")
    try Self.require(theirs.openConnections == 0, "\(theirs.openConnections) connections are open")
    // The close may have met an attempt whose connect was accepted and whose greeting was not over.
    let attempts = mine.connects...mine.connects + mine.failedAttempts + mine.abandonedAttempts
    try Self.require(
      attempts.contains(theirs.connectionsAccepted), "\(theirs.connectionsAccepted) of \(attempts)")
    let total = theirs.connections
    try Self.require(
      total.handled - total.handlersSkipped == ran.reduce(0, +),
      "\(total.handled) handled, \(total.handlersSkipped) skipped")
    try Self.require(total.requestsReceived == total.handled, "\(total.requestsReceived) received")
    try Self.require(
      mine.connections.responsesReceived == requests.succeeded + requests.lateReplies,
      "\(mine.connections.responsesReceived) responses"
    )
  }

  private static func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Failure(description: message()) }
  }

  /// Resident memory and open descriptors, as the kernel tells them.
  private static func footprint() throws -> Footprint {
    guard let file = unsafe fopen("/proc/self/statm", "r") else {
      throw Failure(description: "no /proc/self/statm")
    }
    defer { unsafe fclose(file) }
    var line = [UInt8](repeating: 0, count: 256)
    let count = unsafe fread(&line, 1, line.count, file)
    let text = String(decoding: line[..<count], as: UTF8.self)
    let pages = Int(text.split(separator: " ")[1]) ?? 0
    let descriptors = (0..<1_024).count { fcntl(Int32($0), F_GETFD) != -1 }
    return Footprint(bytes: pages * Int(getpagesize()), descriptors: descriptors)
  }
}
