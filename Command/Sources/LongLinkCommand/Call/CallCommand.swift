// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// `longlink call`.
struct CallCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "call",
    abstract: "Sends requests and prints the bodies of their responses.",
    discussion: """
      Bodies go to standard output in the order of the requests, each followed by a newline if \
      there are several requests; on a terminal, control characters are escaped. Errors and \
      everything else go to standard error. With --json \
      there is one object per line, in the order in which the requests end: serial, code (null \
      without a response), refused, delivery, replayed (whether the response is that of an \
      earlier request, with --once), milliseconds and body (base64).

      Exit codes: 0 all responses had code 200, 64 wrong arguments, 3 could not connect, \
      4 deadline exceeded here or in the server, 5 rejected, 6 corrupted or protocol violation, \
      7 connection lost, 8 not secure (TLS), 9 not accepted by the server (its credential or \
      certificate), 1 any other failure. If several requests fail, the first one sent decides.
      """)

  @Argument(help: "The message type, 0 to 16777215.", transform: Values.messageType)
  var type: MessageType

  @OptionGroup var body: RequestBody
  @OptionGroup var server: ServerOptions
  @OptionGroup var identity: IdentityOptions
  @OptionGroup var http: HTTPOptions
  @OptionGroup var once: OnceOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The timeout of the connect and of each request (default: 15).",
      valueName: "seconds"),
    transform: Values.time)
  var timeout: Duration?

  @Option(
    parsing: .unconditional, help: "How many requests to send (default: 1).",
    transform: Values.count)
  var count = 1

  @Option(
    parsing: .unconditional, help: "How many requests may be in flight (default: 1).",
    transform: Values.count)
  var inFlight = 1

  @Flag(help: "Print one JSON object for each request.")
  var json = false

  func validate() throws {
    guard once.keepsTicket else { return }
    guard count == 1 else {
      throw ValidationError("A ticket is for one request: leave out --ticket or --count.")
    }
    guard !http.isGiven else {
      throw ValidationError("Tickets are made on a connection: leave out --ticket or --http.")
    }
    guard identity.isGiven || server.hasProof else {
      throw ValidationError(
        "A ticket is of one client, which the next call could not be: add --identity or --token.")
    }
  }

  func run() async throws {
    Output.logToStandardError()
    let bytes = try body.read()
    let kept = try once.keptTicket()
    let client = try server.makeClient(over: http, as: identity) { configuration in
      if let timeout { configuration.timeouts.request = timeout }
    }
    var printer = CallPrinter(asJSON: json, separates: count > 1)
    do {
      try await server.connect(client, within: timeout)
      try await send(bytes, under: kept, through: client) { try printer.take($0) }
      await client.close(within: .zero)
    } catch let error as LongLinkError {
      // The request of an earlier call may have run.
      try printer.notConnected(kept == nil ? error : error.after(.sent), requests: count)
    }
    if let error = printer.firstFailure { throw ExitCode(ExitStatus.of(error)) }
  }

  /// Keeps up to `inFlight` requests in flight, and passes on each result as it comes.
  private func send(
    _ bytes: [UInt8], under kept: OnceTicket?, through client: LongLinkClient,
    _ take: (CallResult) throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: CallResult.self) { group in
      var next = 0
      while next < count {
        if next >= inFlight, let result = try await group.next() { try take(result) }
        let index = next
        let ticket = if let kept { kept } else { try await once.makeTicket(for: client) }
        group.addTask(executorPreference: client.loop) {
          await CallCommand.exchange(index, type, bytes, ticket, through: client)
        }
        next += 1
      }
      for try await result in group { try take(result) }
    }
  }

  private static func exchange(
    _ index: Int, _ type: MessageType, _ bytes: [UInt8], _ ticket: OnceTicket?,
    through client: LongLinkClient
  ) async -> CallResult {
    let clock = ContinuousClock()
    let begin = clock.now
    let options =
      ticket.map { RequestOptions(waitsForConnection: true, retry: .once, ticket: $0) }
    let task = client.submit(type, bytes, options: options ?? RequestOptions())
    let outcome: Result<[UInt8], LongLinkError>
    do {
      outcome = .success(try await task.value)
    } catch {
      outcome = .failure(error)
    }
    return CallResult(
      index: index, serial: task.serial, outcome: outcome,
      isReplayed: ticket?.isReplayed == true, duration: clock.now - begin)
  }
}
