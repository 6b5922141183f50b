// SPDX-License-Identifier: Apache-2.0

#if Operations
import ArgumentParser
import Foundation
import Logging
import LongLinkCommandSupport
import LongLinkOps
import LongLinkServer

/// The port on which people and programs watch and operate the server.
struct OperationsOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Show the state of the server over HTTP on this port; 0 for a free one. A further line, \
      `ops on HOST:PORT`, says where. `longlink top` shows it in a terminal.
      """,
      valueName: "port"),
    transform: Values.listeningPort)
  private var ops: UInt16?

  @Option(
    help: ArgumentHelp(
      "The address of --ops (default: 127.0.0.1). One that other machines reach needs a token.",
      valueName: "address"),
    transform: Values.host)
  private var opsHost: String?

  @Option(
    help: ArgumentHelp(
      "A further name by which clients may call the port, in `Host`; may be repeated.",
      valueName: "name"))
  private var opsName: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      The secret that --ops asks for, as `Bearer` or as a password. Other users of this machine \
      can see it in the list of processes, so set LONGLINK_OPS_TOKEN instead.
      """, valueName: "token"))
  private var opsToken: String?

  func validate() throws {
    guard ops != nil || opsHost == nil && opsName.isEmpty && opsToken == nil else {
      throw ValidationError("--ops-host, --ops-name and --ops-token need --ops.")
    }
  }

  /// Makes the port of a server; nil without `--ops`. Recordings are written in any case.
  func makePort(
    for server: LongLinkServer, _ recording: RecordingOptions, verbose: Bool
  ) throws -> OperationsPort? {
    guard ops != nil || recording.areWritten else { return nil }
    var configuration = OperationsConfiguration()
    configuration.port = Int(ops ?? 0)
    if let opsHost { configuration.host = opsHost }
    configuration.names = opsName
    configuration.token = opsToken ?? OperationsToken.ofEnvironment
    configuration.methods = DemoRoutes.names
    recording.set(in: &configuration)
    configuration.logger.logLevel = verbose ? .debug : .warning
    do {
      let port = try OperationsPort(for: server, configuration)
      // From now on it writes recordings, also if it is not started.
      return ops == nil ? nil : port
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}

/// Where `serve` and `top` find the token of an operations port without an option.
enum OperationsToken {
  static var ofEnvironment: String? {
    ProcessInfo.processInfo.environment["LONGLINK_OPS_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
  }
}
#endif
