// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Two network namespaces with a cable between them, and a filter in one of them.
///
/// Nothing outside of them is touched; what is in them goes when they do.
final class Namespaces: Sendable {
  /// The one that servers live in, and its address.
  let near: String
  static let nearAddress = "192.0.2.1"
  /// The one that clients live in.
  let far: String
  private static let farAddress = "192.0.2.2"
  /// The program that drops packets.
  private let filter: String

  /// Why there can be none here; nil where there can.
  static var problem: String? { found.problem }

  /// What filters packets here, and why nothing does.
  private static let found: (filter: String, problem: String?) = look()

  private static func look() -> (filter: String, problem: String?) {
    #if os(Linux)
    guard geteuid() == 0 else { return ("", "network namespaces need root") }
    for (name, package) in [("ip", "iproute2"), ("iptables", "iptables")] {
      guard program(name) != nil else {
        return ("", "there is no program \(name) (Debian: apt-get install \(package))")
      }
    }
    // Which of its two interfaces the kernel has cannot be told but by trying.
    var problems: [String] = []
    for filter in ["iptables", "iptables-legacy"] {
      do {
        let namespaces = try Namespaces(filter: filter)
        defer { namespaces.remove() }
        try namespaces.lose(0.5)
        return (filter, nil)
      } catch {
        problems.append("\(error)")
      }
    }
    return ("", problems.joined(separator: "; "))
    #else
    return ("", "only Linux has network namespaces")
    #endif
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  convenience init() throws { try self.init(filter: Namespaces.found.filter) }

  private init(filter: String) throws {
    self.filter = filter
    let number = String(UInt32.random(in: 0 ... .max), radix: 16)
    (near, far) = ("longlink-\(number)-near", "longlink-\(number)-far")
    do {
      try Namespaces.run("ip", "netns", "add", near)
      try Namespaces.run("ip", "netns", "add", far)
      // Both ends are made where they belong: the machine's own namespace never sees them.
      try Namespaces.run(
        "ip", "link", "add", "cable", "netns", near, "type", "veth", "peer", "cable", "netns", far)
      for (name, address) in [
        (near, Namespaces.nearAddress), (far, Namespaces.farAddress),
      ] {
        try Namespaces.run("ip", "-n", name, "address", "add", "\(address)/30", "dev", "cable")
        try Namespaces.run("ip", "-n", name, "link", "set", "cable", "up")
        try Namespaces.run("ip", "-n", name, "link", "set", "lo", "up")
      }
    } catch {
      remove()
      throw error
    }
  }

  deinit { remove() }

  func remove() {
    for name in [near, far] { try? Namespaces.run("ip", "netns", "delete", name) }
  }

  /// What runs a program in a namespace, and becomes it.
  func launcher(in name: String) -> [String] {
    [Namespaces.program("ip") ?? "ip", "netns", "exec", name]
  }

  /// Drops each packet, in both directions, with this probability (iptables-extensions(8)).
  func lose(_ probability: Double) throws {
    try heal()
    for chain in ["INPUT", "OUTPUT"] {
      try filter(
        "-A", chain, "-m", "statistic", "--mode", "random", "--probability", "\(probability)",
        "-j", "DROP")
    }
  }

  /// Drops all packets in both directions.
  func cut() throws {
    for chain in ["INPUT", "OUTPUT"] { try filter("-I", chain, "-j", "DROP") }
  }

  func heal() throws {
    try filter("-F")
  }

  private func filter(_ arguments: String...) throws {
    // The lock of iptables belongs to the whole machine: somebody else may hold it for a moment.
    let command = ["ip", "netns", "exec", far, filter, "-w", "10"] + arguments
    try Namespaces.run(command)
  }

  private static func program(_ name: String) -> String? {
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  private static func run(_ command: String...) throws { try run(command) }

  private static func run(_ command: [String]) throws {
    let path = program(command[0]) ?? command[0]
    let end = try SpawnedProcess.run([path] + command.dropFirst())
    guard end.code == 0 else {
      let words = end.errors.split(separator: "\n").first ?? ""
      throw Failure(description: "\(command.joined(separator: " ")): \(words)")
    }
  }
}
