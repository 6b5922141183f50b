// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

@main
struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measures LongLink, over loopback.", subcommands: [Compare.self, ScaleCommand.self],
    defaultSubcommand: Compare.self)

  /// The folder of this program, with links resolved. It also contains the peers.
  static var folder: URL {
    let program = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
    return program.resolvingSymlinksInPath().deletingLastPathComponent()
  }

  static func note(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
  }

  /// The model and the number of CPUs.
  static var machine: String {
    let info = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let model = info.split(separator: "\n").first { $0.hasPrefix("model name") }
    let name = model?.split(separator: ":").last.map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    return "\(name ?? "an unknown CPU"), \(ProcessInfo.processInfo.processorCount) CPUs"
  }
}
