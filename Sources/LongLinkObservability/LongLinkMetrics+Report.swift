// SPDX-License-Identifier: Apache-2.0

#if Operations
public import LongLink
public import LongLinkServer

extension LongLinkMetrics {
  /// Records the counters of a server now, every `interval`, and a last time when the task is
  /// cancelled, after which it returns. Cancel the task after the server has shut down, so that
  /// nothing is missing.
  ///
  /// It asks each loop of the server each time. Default 10 s; it traps if `interval` is not above
  /// zero. Call it once for each server: two calls count twice. `clock` times the intervals.
  public func report(
    _ server: LongLinkServer, every interval: Duration = .seconds(10),
    clock: some Clock<Duration> = ContinuousClock()
  ) async {
    await report(CounterReport(factory, role: "server"), every: interval, clock) {
      CounterReport.samples(of: await server.counters())
    }
  }

  /// Records the counters of a client now, every `interval`, and a last time when the task is
  /// cancelled, after which it returns. Cancel the task after the client was closed, so that
  /// nothing is missing.
  ///
  /// It asks the client's loop each time. Default 10 s; it traps if `interval` is not above zero.
  /// Call it once for each client: two calls count twice. `clock` times the intervals.
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
