// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// LongLink, used only through its public interface.
@main
struct LongLinkPeer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [
    Serve.self, Generate.self, Stream.self, Idle.self, Greet.self, Renew.self, Principals.self,
  ])
}
