// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

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
      ServeCommand.self, CallCommand.self, StreamCommand.self, UploadCommand.self,
      PingCommand.self, BenchCommand.self, DemoCommand.self, SimulateCommand.self,
      CertificatesCommand.self, DissectorCommand.self, DecodeCommand.self,
    ] + overHTTP)

  /// What there is with the trait `HTTP` alone.
  private static var overHTTP: [any ParsableCommand.Type] {
    #if HTTP
    [FetchCommand.self]
    #else
    []
    #endif
  }
}
