// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLink
import Logging
import Testing

@testable import LongLinkTransport

/// What clients do with look-ups that take long.
@Suite(.timeLimit(.minutes(5))) struct LookUpTests {
  /// Whether the round ends by its timeout, or by what the application does.
  @Test(arguments: [true, false])
  func `the look-up of a round that has ended is withdrawn`(timesOut: Bool) async throws {
    let (begun, gate) = (Tally<String>(), DispatchSemaphore(value: 0))
    let resolver = Resolver(mostThreads: 1) { host in
      begun.add(host)
      gate.wait()
      return .success([])
    }
    let driver = KernelDriver(poller: try PollPoller(), resolver: resolver)
    let loop = EventLoop(driver: driver, name: "names")
    try loop.start()
    let other = LookUpOwner()
    resolver.resolve(host: "other.test", port: 1, for: other) { _ in }
    await begun.reached(1)

    var configuration = ClientConfiguration(servers: [.host("dead.test", port: 4000)])
    configuration.logger.logLevel = .critical
    configuration.timeouts.connect = timesOut ? .milliseconds(50) : .seconds(3_600)
    configuration.reconnect = .spread(over: .seconds(3_600))
    let client = try LongLinkClient(configuration, on: loop)
    let connecting = Task { try await client.connect() }
    if timesOut {
      _ = await connecting.result
    } else {
      while resolver.waiting == 0, !Task.isCancelled { await Task.yield() }
      await client.suspend()
    }
    while resolver.waiting > 0, !Task.isCancelled { await Task.yield() }
    await client.close()
    for _ in 0..<3 { gate.signal() }
    await withCheckedContinuation { continuation in
      resolver.resolve(host: "marker.test", port: 1, for: other) { _ in continuation.resume() }
    }
    #expect(begun.elements == ["other.test", "marker.test"])
    connecting.cancel()
    loop.shutDown()
  }
}
