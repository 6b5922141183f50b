// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The command `longlink`.
@main
struct LongLinkTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "longlink",
    abstract: "Speaks LongLink: many typed requests, replies and pushes on one connection.",
    discussion: """
      Standard output carries results alone; everything else goes to standard error.

      Exit codes: 0 all went well, 64 wrong arguments, 3 could not connect, 4 a deadline passed, \
      5 rejected, 6 corrupted or a protocol violation, 7 the connection was lost, 1 anything else.
      """,
    subcommands: [
      ServeCommand.self, CallCommand.self, PingCommand.self, BenchCommand.self, DemoCommand.self,
      SimulateCommand.self, DissectorCommand.self, DecodeCommand.self,
    ])
}
