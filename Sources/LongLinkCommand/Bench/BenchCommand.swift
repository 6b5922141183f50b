import Histogram
import ArgumentParser
import Foundation
import LongLink

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

      Exit codes: 0 all were answered with 200, else as `longlink call` for the first failure.
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
  var deadline: Duration?

  @Flag(help: "Print one JSON object; its times are in milliseconds.")
  var json = false

  func run() async throws {
    Output.logToStandardError()
    let clients = try await connect()
    let tally = BenchTally()
    let start = ContinuousClock.now
    let progress = Task { await showProgress(of: tally, since: start) }
    let schedule = makeSchedule(from: start, tally)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<inFlight {
        for client in clients {
          group.addTask(executorPreference: client.loop) {
            await send(through: client, as: schedule, tally)
          }
        }
      }
    }
    let took = ContinuousClock.now - start
    progress.cancel()
    await progress.value
    let counts = tally.now
    let report = BenchReport(counts, over: took)
    if json {
      try Output.line(try report.json)
    } else {
      for line in report.lines { try Output.line(line) }
    }
    for client in clients { await client.close(within: .zero) }
    if let error = counts.firstFailure {
      Output.error("the first failure was \(error)")
      throw ExitCode(ExitStatus.of(error))
    }
  }

  private func connect() async throws -> [LongLinkClient] {
    var clients: [LongLinkClient] = []
    for _ in 0..<connections {
      let client = try server.makeClient { configuration in
        if let deadline { configuration.deadline = deadline }
      }
      do {
        try await client.connect()
      } catch {
        Output.error("\(error)")
        throw ExitCode(ExitStatus.of(error))
      }
      clients.append(client)
    }
    return clients
  }

  private func makeSchedule(
    from start: ContinuousClock.Instant, _ tally: BenchTally
  ) -> any BenchSchedule {
    guard let rate else { return ClosedSchedule(end: start + duration) }
    let schedule = OpenSchedule(rate: rate, from: start, for: duration)
    schedule.run { tally.notSent(since: $0) }
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
