// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLink
import LongLinkCommandSupport

/// `longlink demo`.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Shows a client and a server process through good and bad times.",
    discussion: """
      Starts a server process, asks it many things at once, takes pushes, cancels, kills it, \
      freezes it, and says what became of each request. Everything that is said is checked: what \
      differs ends the demo with exit code 1.
      """)

  /// The whole takes about seven seconds where the machine is idle.
  private static let limit = Duration.seconds(30)

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
          throw DemoFailure("it was not over within \(DemoCommand.limit.inSeconds)")
        }
        group.addTask {
          if let signal = await signals.first() { throw ExitCode(128 + signal) }
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch let failure as DemoFailure {
      Output.error("the demo differs: \(failure)")
      throw ExitCode(ExitStatus.failure)
    } catch let failure as ChildFailure {
      Output.error("the demo differs: \(failure)")
      throw ExitCode(ExitStatus.failure)
    } catch let error as LongLinkError {
      Output.error("the demo differs: \(error)")
      throw ExitCode(ExitStatus.failure)
    }
  }
}
