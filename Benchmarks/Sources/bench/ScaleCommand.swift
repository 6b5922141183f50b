// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchDriver
import BenchSupport
import Foundation

/// `bench scale`.
struct ScaleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scale",
    abstract: "Measures idle connections, what clients cost, and a request beside many others.")

  @Option(help: "Idle connections.")
  var connections = 10_000
  @Option(help: "Seconds for which they are idle.")
  var idle = 35.0
  @Flag(help: "Secure the idle connections with TLS.")
  var tls = false
  @Option(help: "Rounds of the curves.")
  var rounds = 5
  @Option(help: "Write the figures to this file.")
  var json: String?

  private struct Report: Codable {
    let machine: String
    let idle: Scale.Idle
    let identities: Scale.Identities
    let renewals: Scale.Renewals
    /// The microseconds of a push to a principal, by the number of clients.
    let pushes: [Int: PushOutcome]
    let timers: [Scale.Point]
    let inFlight: [Scale.Point]
  }

  func run() throws {
    let scale = Scale(Runner(folder: Bench.folder, seconds: 1, warmUp: 0.5))
    print("\(Bench.machine)\n")
    let idle = try scale.idle(connections: connections, seconds: idle, tls: tls)
    print(idle.lines.joined(separator: "\n") + "\n")
    let identities = try scale.identities(connections: connections)
    print(identities.line)
    let renewals = try scale.renewals(connections: 1_000, seconds: 10)
    print(renewals.line)
    var pushes: [Int: PushOutcome] = [:]
    for clients in [1_000, 10_000, 100_000] {
      let push = try scale.push(among: clients)
      pushes[clients] = push
      print(
        String(
          format: "%9d clients      %.2f µs of CPU for a push to a principal, %.2f to a peer",
          clients, push.principal, push.peer))
    }
    print("")
    let timers = try scale.curve(.timers, [1_000, 10_000, 100_000, 1_000_000], rounds: rounds)
    for point in timers { print(point.line(of: "live timers")) }
    let inFlight = try scale.curve(.inFlight, [100, 1_000, 10_000, 100_000], rounds: rounds)
    for point in inFlight { print(point.line(of: "in flight  ")) }
    guard let json else { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    let report = Report(
      machine: Bench.machine, idle: idle, identities: identities, renewals: renewals,
      pushes: pushes, timers: timers, inFlight: inFlight)
    try encoder.encode(report).write(to: URL(fileURLWithPath: json))
  }
}
