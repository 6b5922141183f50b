// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// `longlink demo`.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Shows a client whose server works, is killed, freezes and comes back.",
    discussion: """
      Starts a server process, sends it concurrent requests, receives pushes and streams, cancels \
      a request, kills the server, freezes it, and prints the outcome of each request. Then it \
      does the same with TLS, a wrong certificate, and one that is replaced under load. A client \
      renews its credential under a stream, and moves while it gets broadcasts. At last 1,000 \
      payments run once each, while their connection is cut, and their server is killed (with \
      the trait SQLite). Every statement is checked: if one does not hold, the demo ends with \
      exit code 1.
      """)

  /// The demo takes about ten seconds on an idle machine.
  private static let limit = Duration.seconds(60)

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let timeline = Timeline(isColoured: Timeline.wantsColour)
    let demo = Demo(timeline: timeline)
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await demo.run() }
        group.addTask {
          try await Task.sleep(for: DemoCommand.limit)
          throw DemoFailure("it did not end within \(DemoCommand.limit.inSeconds)")
        }
        group.addTask {
          if let signal = await signals.first() { throw ExitCode(128 + signal) }
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch let failure as DemoFailure {
      Output.error("the demo failed: \(failure)")
      throw ExitCode(ExitStatus.failure)
    } catch let failure as ChildFailure {
      Output.error("the demo failed: \(failure)")
      throw ExitCode(ExitStatus.failure)
    } catch let error as LongLinkError {
      Output.error("the demo failed: \(error)")
      throw ExitCode(ExitStatus.failure)
    }
  }
}
