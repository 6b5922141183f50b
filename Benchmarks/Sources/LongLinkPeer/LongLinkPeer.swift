// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// LongLink itself, through its public interface alone.
@main
struct LongLinkPeer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [
    Serve.self, Generate.self, Idle.self,
  ])
}
