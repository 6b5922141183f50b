// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// The address that a server listens on: the options of a client that connects, and port 0.
struct ListenOptions: ParsableArguments {
  @Option(help: "The name or address to listen on (default: 127.0.0.1).", transform: Values.host)
  private var host: String?

  @Option(
    parsing: .unconditional,
    help: "The port to listen on, 1 to 65535 (default: 9000); 0 for a free one.",
    transform: Values.listeningPort)
  private var port: UInt16?

  @Option(
    help: ArgumentHelp(
      "The Unix socket to listen on, instead of a host and a port.", valueName: "path"))
  private var unix: String?

  func validate() throws {
    guard unix == nil || host == nil && port == nil else {
      throw ValidationError("Give --unix, or --host and --port, not both.")
    }
  }

  var endpoint: Endpoint {
    unix.map { .unix(path: $0) } ?? .host(host ?? "127.0.0.1", port: port ?? 9000)
  }
}
