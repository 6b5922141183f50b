// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// The address of a server that a client connects to. `ListenOptions` has the server's own.
struct EndpointOptions: ParsableArguments {
  @Option(help: "The server's name or address (default: 127.0.0.1).", transform: Values.host)
  private var host: String?

  @Option(
    parsing: .unconditional,
    help: "The server's port, 1 to 65535 (default: 9000).",
    transform: Values.port)
  private var port: UInt16?

  @Option(
    help: ArgumentHelp(
      "The server's Unix socket, instead of a host and a port.", valueName: "path"))
  private var unix: String?

  func validate() throws {
    guard unix == nil || host == nil && port == nil else {
      throw ValidationError("Give --unix, or --host and --port, not both.")
    }
  }

  /// Whether a place was given.
  var isGiven: Bool { host != nil || port != nil || unix != nil }

  var endpoint: Endpoint {
    unix.map { .unix(path: $0) } ?? .host(host ?? "127.0.0.1", port: port ?? 9000)
  }
}
