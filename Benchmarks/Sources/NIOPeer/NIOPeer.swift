// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// SwiftNIO with the same frames: with handlers and promises, and through `NIOAsyncChannel`.
@main
struct NIOPeer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [Serve.self, Generate.self])

  enum Style: String, CaseIterable, ExpressibleByArgument {
    /// Channel handlers; promises by serial.
    case handlers
    /// `NIOAsyncChannel`, an actor and continuations by serial.
    case asynchronous = "async"
  }
}
