import ArgumentParser

/// `longlink simulate`.
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Runs clients and servers in virtual time.",
    subcommands: [StormCommand.self])
}
