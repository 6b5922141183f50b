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
    abstract: "Puts a load on a server and prints how long its answers take.",
    discussion: """
      Without --rate each of the requests in flight is followed by another as soon as it has ended \
      (a closed loop): this measures what the server can do, but while the server stalls nothing \
      is sent, so that a stall counts as one slow request.

      With --rate requests are due at that rate, over all connections, whatever has become of \
      those before them (an open loop), and the time of each counts from when it was due. What is \
      due while --in-flight requests are under way on each connection waits, and that counts too.

      Times are those of requests that were answered, with whatever code, of those that waited for \
      an answer until their deadline, and of those that were due and never sent. After a lost \
      connection a caller rests for 100 ms.

      SIGINT (Ctrl-C) ends it early, and it prints what was measured until then.

      Exit codes: 0 all were answered with 200, 130 after SIGINT, else as `longlink call` for the \
      first failure.
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
    help: ArgumentHelp("For how long requests are sent (default: 10).", valueName: "seconds"),
    transform: Values.time)
  var duration: Duration = .seconds(10)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How many requests are due in a second, over all connections (default: as many as can be).",
      valueName: "requests"),
    transform: Values.rate)
  var rate: Double?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("How long each request may take (default: 15).", valueName: "seconds"),
    transform: Values.time)
  var timeout: Duration?

  @Flag(help: "Print one JSON object; its times are in milliseconds.")
  var json = false

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let clients = try (0..<connections).map { _ in
      try server.makeClient { configuration in
        if let timeout { configuration.timeout = timeout }
        // The server may allow fewer at once than were asked for: the rest is queued.
        configuration.maxWaiting = max(configuration.maxWaiting, inFlight)
        let bytes = inFlight.multipliedReportingOverflow(by: body)
        configuration.maxWaitingBytes = max(
          configuration.maxWaitingBytes, bytes.overflow ? .max : bytes.partialValue)
      }
    }
    let tally = BenchTally()
    let (outcome, signal) = await signals.cancelling { await putLoad(on: clients, tally) }
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
  /// cancelled. Returns how long requests were sent.
  private func putLoad(
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
    // A task group looks through all of its children when one ends: slow with 100,000.
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

  /// Makes one request after the other.
  private func send(
    through client: LongLinkClient, as schedule: any BenchSchedule, _ tally: BenchTally
  ) async {
    let bytes = (0..<body).map { UInt8(truncatingIfNeeded: $0) }
    while let due = await schedule.next() {
      do throws(LongLinkError) {
        _ = try await client.request(type, bytes)
        tally.answered(after: ContinuousClock.now - due)
      } catch {
        // What Ctrl-C has cancelled says nothing about the server.
        if Task.isCancelled, error.code == .cancelled { return }
        tally.failed(error, after: ContinuousClock.now - due)
        if error.code != .rejected { try? await client.loop.sleep(for: .milliseconds(100)) }
      }
    }
  }

  /// Rewrites a line on standard error, where that is a terminal, each second.
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
