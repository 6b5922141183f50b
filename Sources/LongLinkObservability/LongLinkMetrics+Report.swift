// SPDX-License-Identifier: Apache-2.0

#if Operations
public import LongLink
public import LongLinkServer

extension LongLinkMetrics {
  /// Records the counters of a server, and what waits there, until the task is cancelled; then a
  /// last time. Shut the server down before you cancel it, and nothing is missing.
  ///
  /// It asks each loop once in `interval`, which is more than zero. Default 10 s. Call it once for
  /// a server.
  public func report(
    _ server: LongLinkServer, every interval: Duration = .seconds(10),
    clock: some Clock<Duration> = ContinuousClock()
  ) async {
    await report(CounterReport(factory, role: "server"), every: interval, clock) {
      CounterReport.samples(of: await server.counters())
    }
  }

  /// Records the counters of a client, and what waits there, until the task is cancelled; then a
  /// last time. Close the client before you cancel it, and nothing is missing.
  ///
  /// It asks the client's loop once in `interval`, which is more than zero. Default 10 s. Call it
  /// once for a client.
  public func report(
    _ client: LongLinkClient, every interval: Duration = .seconds(10),
    clock: some Clock<Duration> = ContinuousClock()
  ) async {
    await report(CounterReport(factory, role: "client"), every: interval, clock) {
      CounterReport.samples(of: await client.counters())
    }
  }

  private func report(
    _ report: CounterReport, every interval: Duration, _ clock: some Clock<Duration>,
    _ samples: () async -> [CounterReport.Sample]
  ) async {
    precondition(interval > .zero, "an interval is more than zero")
    while !Task.isCancelled {
      report.record(await samples())
      // A cancelled sleep throws, and the loop ends.
      try? await clock.sleep(for: interval)
    }
    report.record(await samples())
  }
}
#endif
