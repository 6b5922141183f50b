// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkScenarios

/// `longlink simulate`.
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Runs clients and servers in a simulated network, in virtual time.",
    subcommands: [SimulateRunCommand.self, SimulateReplayCommand.self, StormCommand.self])
}

extension FaultProfile {
  /// The profile with a name; if there is none, throws an error that lists the profiles.
  static func named(_ name: String) throws -> FaultProfile {
    guard let profile = FaultProfile(named: name) else {
      let names = FaultProfile.all.map(\.name).joined(separator: ", ")
      throw Output.usageError("there is no profile \(name); the profiles are \(names)")
    }
    return profile
  }
}
