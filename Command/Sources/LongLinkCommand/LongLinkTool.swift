// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkCore

/// The command `longlink`.
@main
struct LongLinkTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "longlink",
    abstract: "Speaks LongLink: many typed requests, responses and pushes on one connection.",
    discussion: """
      Results go to standard output, everything else to standard error.

      Exit codes: 0 success, 64 wrong arguments, 3 could not connect, 4 deadline exceeded, \
      5 rejected, 6 corrupted or protocol violation, 7 connection lost, 8 not secure (TLS), \
      9 not accepted by the server (its credential or certificate), 1 any other failure.
      """,
    subcommands: [
      ServeCommand.self, CallCommand.self, StreamCommand.self, ListenCommand.self,
      UploadCommand.self, PingCommand.self, BenchCommand.self, DemoCommand.self,
      SimulateCommand.self, CertificatesCommand.self, DissectorCommand.self, DecodeCommand.self,
      ReplayCommand.self,
    ] + overHTTP)

  static func main() async {
    // A name that is not UTF-8 would be another one as a string.
    if let argument = rawArguments.first(where: { String(validating: $0, as: UTF8.self) == nil }) {
      Output.error(
        "the argument '\(PeerText(utf8: argument))' is not UTF-8; give the file another name")
      exit(withError: ExitCode(ExitStatus.usage))
    }
    await main(nil)
  }

  private static var rawArguments: [[UInt8]] {
    (0..<Int(CommandLine.argc)).compactMap { index in
      unsafe CommandLine.unsafeArgv[index].map { unsafe Array(Data(bytes: $0, count: strlen($0))) }
    }
  }

  /// What there is with the trait `HTTP` alone.
  private static var overHTTP: [any ParsableCommand.Type] {
    #if HTTP && Operations
    [FetchCommand.self, TopCommand.self]
    #elseif HTTP
    [FetchCommand.self]
    #else
    []
    #endif
  }
}
