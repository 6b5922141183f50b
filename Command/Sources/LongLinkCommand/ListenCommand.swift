// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// `longlink listen`.
struct ListenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "listen",
    abstract: "Prints the pushes of a server as they come.",
    discussion: """
      The body of each push goes to standard output as a line, with escapes for control characters \
      and for bytes that are not UTF-8; with --json an object with its type and its body (base64). \
      Errors and everything else go to standard error.

      The client stays connected: it renews its token in time, and connects again when the \
      connection was lost, which it reports. What the server sends meanwhile does not come. At \
      most 1,024 pushes and 64 MiB wait for a slow standard output; beyond it the oldest ones are \
      dropped, and counted on standard error.

      Exit codes: 0 --count pushes were printed, or --timeout has passed and there is no --count, \
      64 wrong arguments, 3 could not connect, 4 --timeout has passed before enough pushes were \
      printed or before the first connection was made, 6 corrupted or protocol violation, 8 not \
      secure (TLS), 9 not accepted by the server (its credential or certificate), also later, \
      1 any other failure.
      """)

  @Option(
    parsing: .unconditional,
    help: "Print only pushes of this message type, 0 to 16777215 (default: all).",
    transform: Values.messageType)
  var type: MessageType?

  @OptionGroup var server: ServerOptions
  @OptionGroup var identity: IdentityOptions

  @Option(
    parsing: .unconditional, help: "End after this number of pushes (default: never).",
    transform: Values.count)
  var count: Int?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "End after this time, the connect included (default: never).", valueName: "seconds"),
    transform: Values.time)
  var timeout: Duration?

  @Flag(help: "Print one JSON object for each push.")
  var json = false

  func run() async throws {
    Output.logToStandardError()
    let start = ContinuousClock.now
    let client = try server.makeClient(as: identity) { _ in }
    // From before the connect on, so that the first push is not missed.
    let (pushes, states) = (client.pushes(of: type), client.states())
    var status: Int32
    do {
      try await server.connect(client, within: timeout)
      let rest = timeout.map { $0 - (ContinuousClock.now - start) }
      status = try await listen(pushes, states, within: rest)
    } catch let error as LongLinkError {
      Output.error("\(error)")
      status = ExitStatus.of(error)
    }
    await client.close(within: .zero)
    if status != 0 { throw ExitCode(status) }
  }

  /// Prints pushes until there are enough, the time is over, or the client has given up. Returns
  /// the exit code.
  private func listen(
    _ pushes: BufferedSequence<Push, Never>, _ states: AsyncStream<ConnectionState>,
    within time: Duration?
  ) async throws -> Int32 {
    try await withThrowingTaskGroup(of: Int32?.self) { group in
      group.addTask { try await show(pushes) ? 0 : nil }
      group.addTask { await ListenCommand.watch(states) }
      if let time {
        group.addTask {
          guard (try? await Task.sleep(for: time)) != nil else { return nil }
          return count == nil ? 0 : ExitStatus.deadline
        }
      }
      let first = try await group.next() ?? nil
      group.cancelAll()
      // The last push may have been printed at the same time.
      let isEnough = try await group.contains { $0 == 0 }
      return isEnough ? 0 : first ?? ExitStatus.failure
    }
  }
}

// MARK: - What is printed

/// The object that `--json` prints.
private struct Record: Encodable {
  let type: UInt32
  let body: String
}

extension ListenCommand {
  /// Prints pushes; returns true once there are enough, and false when the task is cancelled.
  private func show(_ pushes: BufferedSequence<Push, Never>) async throws -> Bool {
    var (number, reported) = (0, UInt64(0))
    for await push in pushes {
      if let text = ListenCommand.report(of: pushes.dropped, after: &reported) {
        Output.error(text)
      }
      if json {
        let body = Data(push.body).base64EncodedString()
        try Output.json(Record(type: push.type.rawValue, body: body))
      } else {
        try Output.line(ofPeer: push.body)
      }
      number += 1
      if number == count { return true }
    }
    return false
  }

  /// What to say about the number of dropped pushes. Nil until they are twice as many as the last
  /// time, so that there are few lines, whatever the server sends.
  static func report(of dropped: UInt64, after reported: inout UInt64) -> String? {
    guard dropped > 0, dropped >= 2 * reported else { return nil }
    reported = dropped
    return "standard output is too slow: \(dropped) pushes were dropped"
  }

  /// Reports losses of the connection. Returns an exit code when the client has given up, and nil
  /// when the task is cancelled.
  private static func watch(_ states: AsyncStream<ConnectionState>) async -> Int32? {
    var wasConnected: Bool?
    for await state in states {
      if case .notAccepted(let code) = state {
        Output.error("the server does not accept this client any more: \(code)")
        return ExitStatus.notAccepted
      }
      if state.isConnected {
        if wasConnected == false { Output.error("connected again") }
        wasConnected = true
      } else if wasConnected == true {
        Output.error("the connection was lost; the client is connecting again")
        wasConnected = false
      }
    }
    return nil
  }
}
