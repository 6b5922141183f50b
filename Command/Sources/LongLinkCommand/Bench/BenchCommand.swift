// SPDX-License-Identifier: Apache-2.0

import Histogram
import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// `longlink bench`.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Puts load on a server and prints its response times.",
    discussion: """
      Without --rate the load is a closed loop: each caller sends its next request as soon as \
      the last one has ended. This measures the server's capacity, but nothing is sent while the \
      server stalls, so a stall counts as one slow request.

      With --rate the load is an open loop: requests become due at that rate, over all \
      connections, whether earlier ones have ended or not, and the time of each counts from when \
      it was due. A request that is due while --in-flight others are in flight on each connection \
      waits, and its wait counts too.

      The times are those of requests with a response of any code, of those whose deadline \
      passed, and of those that were due and never sent. After a lost connection a caller pauses \
      for 100 ms.

      SIGINT (Ctrl-C) stops early and prints the measurements so far.

      Exit codes: 0 all responses had code 200, 130 after SIGINT, 64 wrong arguments, else as \
      `longlink call` for the first failure, among them 8 not secure (TLS), 9 not accepted by the \
      server.
      """)

  @OptionGroup var server: ServerOptions

  @Option(
    parsing: .unconditional, help: "The message type, 0 to 16777215 (default: 1).",
    transform: Values.messageType)
  var type: MessageType = 1

  @Option(
    parsing: .unconditional, help: "How many connections to open (default: 1).",
    transform: Values.count)
  var connections = 1

  @Option(
    parsing: .unconditional,
    help: "How many requests may be in flight on each connection (default: 1).",
    transform: Values.count)
  var inFlight = 1

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The size of each body (default: 64).", valueName: "bytes"),
    transform: Values.size)
  var body = 64

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("How long to send requests (default: 10).", valueName: "seconds"),
    transform: Values.time)
  var duration: Duration = .seconds(10)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Requests per second, over all connections (default: as many as possible).",
      valueName: "requests"),
    transform: Values.rate)
  var rate: Double?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The timeout of each request (default: 15).", valueName: "seconds"),
    transform: Values.time)
  var timeout: Duration?

  @Flag(help: "Print one JSON object; its times are in milliseconds.")
  var json = false

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let clients = try (0..<connections).map { _ in
      try server.makeClient { configuration in
        if let timeout { configuration.timeouts.request = timeout }
        // The server may allow fewer concurrent requests: the others are queued.
        configuration.limits.maxWaiting = max(configuration.limits.maxWaiting, inFlight)
        let bytes = inFlight.multipliedReportingOverflow(by: body)
        configuration.limits.maxWaitingBytes = max(
          configuration.limits.maxWaitingBytes, bytes.overflow ? .max : bytes.partialValue)
      }
    }
    let tally = BenchTally()
    let (outcome, signal) = await signals.cancelling { await generateLoad(on: clients, tally) }
    switch outcome {
    case .failure(let error):
      if let signal { throw ExitCode.signal(signal) }
      Output.error("\(error)")
      throw ExitCode(ExitStatus.of(error))
    case .success(let took):
      let counts = tally.now
      let report = BenchReport(counts, over: took)
      if json {
        try Output.line(try report.json)
      } else {
        for line in report.lines { try Output.line(line) }
      }
      for client in clients { await client.close(within: .zero) }
      if let error = counts.firstFailure { Output.error("the first failure was \(error)") }
      if let signal { throw ExitCode.signal(signal) }
      if let error = counts.firstFailure { throw ExitCode(ExitStatus.of(error)) }
    }
  }

  /// Connects all clients and sends requests through them, until the end or until the task is
  /// cancelled. Returns for how long.
  private func generateLoad(
    on clients: [LongLinkClient], _ tally: BenchTally
  ) async -> Result<Duration, LongLinkError> {
    do throws(LongLinkError) {
      for client in clients { try await client.connect() }
    } catch {
      return .failure(error)
    }
    let start = ContinuousClock.now
    let progress = Task { await showProgress(of: tally, since: start) }
    let schedule = makeSchedule(from: start)
    // A task group searches all of its children when one ends: slow with 100,000.
    let callers = (0..<inFlight).flatMap { _ in
      clients.map { client in
        Task(executorPreference: client.loop) { await send(through: client, as: schedule, tally) }
      }
    }
    await withTaskCancellationHandler {
      for caller in callers { await caller.value }
    } onCancel: {
      schedule.stop()
      for caller in callers { caller.cancel() }
    }
    let took = ContinuousClock.now - start
    schedule.finish { tally.notSent(since: $0) }
    progress.cancel()
    await progress.value
    return .success(took)
  }

  private func makeSchedule(from start: ContinuousClock.Instant) -> any BenchSchedule {
    guard let rate else { return ClosedSchedule(end: start + duration) }
    let schedule = OpenSchedule(rate: rate, from: start, for: duration)
    schedule.run()
    return schedule
  }

  /// Sends one request after another.
  private func send(
    through client: LongLinkClient, as schedule: any BenchSchedule, _ tally: BenchTally
  ) async {
    let bytes = (0..<body).map { UInt8(truncatingIfNeeded: $0) }
    while let due = await schedule.next() {
      do throws(LongLinkError) {
        _ = try await client.request(type, bytes)
        tally.answered(after: ContinuousClock.now - due)
      } catch {
        // A request that Ctrl-C has cancelled says nothing about the server.
        if Task.isCancelled, error.code == .cancelled { return }
        tally.failed(error, after: ContinuousClock.now - due)
        if error.code != .rejected { try? await client.loop.sleep(for: .milliseconds(100)) }
      }
    }
  }

  /// Rewrites a line on standard error each second, if that is a terminal.
  private func showProgress(of tally: BenchTally, since start: ContinuousClock.Instant) async {
    guard isatty(STDERR_FILENO) != 0 else { return }
    var before: UInt64 = 0
    while (try? await Task.sleep(for: .seconds(1))) != nil {
      let counts = tally.now
      let time = (ContinuousClock.now - start) / .seconds(1)
      let p99 = Double(counts.times.valueAtPercentile(99)) / 1_000_000
      Output.progress(
        String(
          format: "%.0f s: %llu answered, %llu in the last second; %llu failed; p99 so far %.3f ms",
          time, counts.answered, counts.answered - before, counts.failed, p99))
      before = counts.answered
    }
    Output.progress("")
  }
}
