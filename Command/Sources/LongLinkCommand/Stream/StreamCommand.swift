// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages

/// `longlink stream`.
struct StreamCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stream",
    abstract: "Sends a request and prints the items of its response as they come.",
    discussion: """
      Each item goes to standard output as a line, with escapes for control characters and for \
      bytes that are not UTF-8; with --raw its bytes alone; with --json an object with its number \
      (from 1), the milliseconds since the start, and its body (base64). If the response has a \
      body, it follows in the same form, in JSON with the number null. Errors and everything else \
      go to standard error.

      With --items each line of standard input is sent as an item, as soon as it is complete. Use \
      --upload for a message type that takes items and sends none.

      With --resume the stream is opened again after a delay, until --deadline, when its \
      connection is lost, and when the server drains or asks for another attempt later. Each \
      return is reported on standard error. Type 6, Count of `longlink serve`, is asked for the \
      items after the last one. Other types get the same request again, so that items may come \
      twice. The body of the response is not printed.

      Exit codes: 0 the response had code 200, or --limit was reached, 64 wrong arguments, \
      3 could not connect, 4 deadline exceeded here or in the server, 5 rejected, 6 corrupted or \
      protocol violation, 7 connection lost, 8 not secure (TLS), 9 not accepted by the server (its \
      credential or certificate), 1 any other failure. Without --limit, 0 alone says that the \
      items are complete.
      """)

  @Argument(help: "The message type, 0 to 16777215.", transform: Values.messageType)
  var type: MessageType

  @OptionGroup var body: RequestBody
  @OptionGroup var server: ServerOptions
  @OptionGroup var identity: IdentityOptions
  @OptionGroup var http: HTTPOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The time limit for all of it, the connect included (default: none).",
      valueName: "seconds"),
    transform: Values.time)
  var deadline: Duration?

  @Option(
    parsing: .unconditional,
    help: "Cancel the stream after this number of items, and exit with 0.",
    transform: Values.count)
  var limit: Int?

  @Flag(help: "Print one JSON object for each item.")
  var json = false

  @Flag(help: "Print the bytes of the items and nothing else.")
  var raw = false

  @Flag(help: "Send each line of standard input as an item.")
  var items = false

  @Flag(help: "The same, and ask for no items.")
  var upload = false

  @Flag(help: "Open the stream again when it is cut off.")
  var resume = false

  func validate() throws {
    guard !(json && raw) else { throw ValidationError("Give --json or --raw, not both.") }
    guard !(items && upload) else { throw ValidationError("Give --items or --upload, not both.") }
    guard !(items || upload) || body.standardInput == nil else {
      throw ValidationError("Standard input is either the body ('-') or the items, not both.")
    }
    guard !(resume && (items || upload)) else {
      throw ValidationError("--resume is for streams without items of standard input.")
    }
    guard !upload || limit == nil else {
      throw ValidationError("--limit counts items of the server; with --upload there are none.")
    }
  }

  func run() async throws {
    Output.logToStandardError()
    let start = ContinuousClock.now
    let bytes = try body.read()
    let client = try server.makeClient(over: http, as: identity) { _ in }
    let printer = StreamPrinter(json ? .json : raw ? .raw : .text, since: start)
    var status: Int32 = 0
    do {
      try await server.connect(client, within: deadline)
      try printer.show(response: try await exchange(bytes, through: client, printer))
    } catch is LimitReached {
      // The request is cancelled by now.
    } catch let error as LongLinkError {
      Output.error(CallPrinter.describe(error))
      status = ExitStatus.of(error)
    }
    await client.close(within: .zero)
    if status != 0 { throw ExitCode(status) }
  }
}

// MARK: - The exchange

/// As many items as were wanted have been printed.
private struct LimitReached: Error {}

extension StreamCommand {
  /// Sends the request, prints the items, and returns the body of the response.
  private func exchange(
    _ bytes: [UInt8], through client: LongLinkClient, _ printer: StreamPrinter
  ) async throws -> [UInt8] {
    // What the connect took is subtracted.
    let options = StreamOptions(
      timeout: deadline.map { max($0 - printer.elapsed, .milliseconds(1)) })
    if upload {
      return try await client.sendItems(type, bytes, options: options) { writer in
        try await upload(to: writer)
      }
    }
    if items {
      return try await client.exchange(type, bytes, options: options) { items, writer in
        try await exchange(items, writer, printer)
      }
    }
    var number = 0
    if resume {
      let request = ResumableRequest(type, bytes)
      let stream = client.stream(type, options: options, resuming: { request.body(after: $0) })
      for try await event in stream.events {
        switch event {
        case .item(let item): try show(item, &number, printer)
        case .resumed(let error, let attempts):
          StreamPrinter.report(returnAfter: error, attempts: attempts, items: number)
        }
      }
      return []
    }
    let stream = client.stream(type, bytes, options: options)
    for try await item in stream { try show(item, &number, printer) }
    return stream.response ?? []
  }

  private func show(_ item: [UInt8], _ number: inout Int, _ printer: StreamPrinter) throws {
    number += 1
    try printer.show(item, number: number)
    if number == limit { throw LimitReached() }
  }

  /// Sends and prints items until the response comes, whatever is still to be sent.
  private func exchange(
    _ items: Items<[UInt8]>, _ writer: ItemWriter<[UInt8]>, _ printer: StreamPrinter
  ) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await StreamCommand.send(to: writer)
        writer.finish()
        return false
      }
      group.addTask {
        var number = 0
        for try await item in items { try show(item, &number, printer) }
        return true
      }
      defer { group.cancelAll() }
      while let isOver = try await group.next(), !isOver {}
    }
  }

  private func upload(to writer: ItemWriter<[UInt8]>) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await StreamCommand.send(to: writer) }
      group.addTask { await writer.waitForEnd() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Sends the lines of standard input.
  private static func send(to writer: ItemWriter<[UInt8]>) async throws {
    var lines = InputLines()
    do {
      while let batch = try await lines.next() { try await writer.write(contentsOf: batch) }
    } catch let error as LongLinkError where error.code != .tooLarge {
      // The exchange has ended: the response says why, after the items.
    }
  }
}

// MARK: - The request of a stream that is opened again

/// A request that asks for the rest of a stream, where its message type is known.
private struct ResumableRequest {
  private let bytes: [UInt8]
  /// The request, if it is one of Count.
  private let count: CountRequest?

  init(_ type: MessageType, _ bytes: [UInt8]) {
    self.bytes = bytes
    count = type == DemoRoutes.count ? try? CountRequest(copying: bytes) : nil
  }

  /// The body that asks for what follows an item.
  func body(after item: [UInt8]?) -> [UInt8] {
    guard var count, let item, let tick = try? Tick(copying: item),
      let number = UInt32(exactly: tick.number)
    else { return bytes }
    count.after = number
    return (try? count.encodedBytes()) ?? bytes
  }
}
