// SPDX-License-Identifier: Apache-2.0

#if HTTP && Operations
import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkCore
import LongLinkDriver
import LongLinkHTTP

/// `longlink top`.
struct TopCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Shows the state of a server that runs with --ops.",
    discussion: """
      In a terminal it shows the state anew every 2 seconds, until a signal ends it. If standard \
      output is none, or with --once, it prints the state once.

      Exit codes: 0 success, 64 wrong arguments, 3 could not connect, 4 no answer in 10 seconds, \
      9 the token is wrong or missing, 5 any other status, 1 any other failure.
      """)

  @Option(help: "The URL of the port (default: http://127.0.0.1:9001).")
  var ops = "http://127.0.0.1:9001"

  @Option(
    help: ArgumentHelp(
      """
      The token of the port (default: LONGLINK_OPS_TOKEN). Other users of this machine can see \
      it in the list of processes.
      """, valueName: "token"))
  var opsToken: String?

  @Flag(help: "Print the state once.")
  var once = false

  /// How often a terminal gets the state.
  private static let interval = Duration.seconds(2)
  private static let timeout = Duration.seconds(10)

  func run() async throws {
    Output.logToStandardError()
    let service = try HTTPService(HTTPConfiguration())
    if once || isatty(STDOUT_FILENO) != 1 {
      let text = try await state(from: service)
      await service.close()
      return try Output.write(text)
    }
    let end = await TerminationSignals().cancelling {
      do {
        while !Task.isCancelled {
          let text = try await state(from: service)
          // The cursor goes to the top, and what is below the text is erased.
          try Output.write(Array("\u{1B}[H\u{1B}[2J".utf8) + text)
          try await Task.sleep(for: TopCommand.interval)
        }
        return nil as ExitCode?
      } catch let code as ExitCode {
        return code
      } catch {
        return Task.isCancelled ? nil : ExitCode(ExitStatus.failure)
      }
    }
    await service.close()
    if let code = end.value { throw code }
    if let signal = end.signal { throw ExitCode.signal(signal) }
  }

  /// The page as text; throws the exit code, after an error on standard error.
  private func state(from service: HTTPService) async throws -> [UInt8] {
    var request = HTTPRequest(.get, ops)
    request.fields["Accept"] = "text/plain"
    request.timeout = TopCommand.timeout
    if let token = opsToken ?? OperationsToken.ofEnvironment {
      request.fields["Authorization"] = "Bearer \(token)"
    }
    do {
      let answer = try await service.send(request)
      // The port has escaped what peers said, but something else may be in its place.
      return Array(Output.printable(String(decoding: answer.body, as: UTF8.self)).utf8)
    } catch {
      let failure = FetchFailure(error)
      Output.error(failure.text)
      let isTokenWrong = error.response == .unauthenticated
      throw ExitCode(isTokenWrong ? ExitStatus.notAccepted : failure.status)
    }
  }
}
#endif
