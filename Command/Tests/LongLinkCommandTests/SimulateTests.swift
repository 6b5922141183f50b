// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkScenarios
import Testing

@testable import LongLinkCommand

/// `longlink simulate run` and `replay`.
@Suite(.timeLimit(.minutes(15))) struct SimulateTests {
  private func json(_ seeds: String) async throws -> [String: Any] {
    let tool = try await Tool(["simulate", "run", "--seeds", seeds, "--json"]).finish()
    #expect(tool.code == 0, "\(tool.text) \(tool.errors)")
    let object = try JSONSerialization.jsonObject(with: Data(tool.output))
    return try #require(object as? [String: Any])
  }

  @Test func `two processes run the same seeds in the same way`() async throws {
    // Each process hashes with a seed of its own, so that no order of a dictionary is the other's.
    let first = try await json("3..6")
    let second = try await json("3..6")
    #expect(first["seeds"] as? Int == 4)
    #expect((first["requests"] as? Int ?? 0) >= 800)
    #expect(first["traceHash"] as? String == second["traceHash"] as? String)
    #expect(first["succeeded"] as? Int == second["succeeded"] as? Int)
    #expect((first["streams"] as? Int ?? 0) >= 40)
    #expect(first["items"] as? Int == second["items"] as? Int)
    #expect((first["failures"] as? [Any])?.isEmpty == true)
  }

  @Test func `a run prints its speed and its faults`() async throws {
    let tool = try await Tool(
      ["simulate", "run", "--seeds", "1..2", "--profile", "restarts", "--jobs", "1"]
    ).finish()
    #expect(tool.code == 0, "\(tool.text)")
    #expect(tool.text.contains("2 seeds in"))
    #expect(tool.text.contains("virtual hours/s"))
    #expect(tool.text.contains("streams among them"))
    #expect(tool.text.contains("all promises were kept"))
    #expect(tool.text.contains("faults: "))
  }

  @Test func `SIGINT prints the results of the seeds so far`() async throws {
    let tool = try Tool(["simulate", "run", "--seeds", "0..99999999", "--jobs", "1"])
    // Once it shows how far it has come, a seed runs.
    while let line = await tool.nextErrorLine(), !line.contains("/100000000 seeds") {}
    tool.send(SIGINT)
    let finished = await tool.finish()
    #expect(finished.code == 130, "\(finished.errors)")
    let seeds = finished.lines.first?.split(separator: " ").first.flatMap { Int($0) }
    #expect((seeds ?? 0) >= 1, "\(finished.text)")
    #expect(finished.text.contains("all promises were kept"))
  }

  @Test func `counts of faults are wrapped`() {
    let faults = Dictionary(uniqueKeysWithValues: FaultKind.allCases.map { ($0, 1_234) })
    #expect(faults.lines.allSatisfy { $0.count <= 80 } && faults.lines.count > 2)
    #expect(faults.lines[0].hasPrefix("faults:  "))
    #expect(faults.lines[1].hasPrefix("         "))
    let words = faults.lines.flatMap { $0.split(separator: " ") }
    #expect(words.count(where: { $0 == "1,234" }) == FaultKind.allCases.count)
  }

  @Test func `a replay draws the run and prints the hash of its trace`() async throws {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-\(UInt64.random(in: 0 ... .max)).svg")
    defer { try? FileManager.default.removeItem(at: path) }
    let tool = try await Tool(
      ["simulate", "replay", "--seed", "3", "--from", "0", "--to", "60", "--svg", path.path]
    ).finish()
    #expect(tool.code == 0, "\(tool.errors)")
    #expect(tool.text.contains("hello"))
    let run = try await json("3")
    let hash = try #require(run["traceHash"] as? String)
    #expect(tool.text.contains("trace \(hash)"))
    let svg = try String(contentsOf: path, encoding: .utf8)
    #expect(svg.hasPrefix("<?xml") && svg.hasSuffix("</svg>\n"))
    #expect(tool.text.contains(/[0-9]+ pings and pongs are left out; --pings draws them/))
    let whole = try await Tool(
      ["simulate", "replay", "--seed", "3", "--to", "60", "--pings"]
    ).finish()
    #expect(whole.lines.count > tool.lines.count)
    #expect(!whole.text.contains("are left out"))
  }

  @Test(arguments: [
    ["run"], ["run", "--seeds", "x"], ["run", "--seeds", "5..1"], ["run", "--seeds", "1..2..3"],
    ["run", "--seeds", "1", "--profile", "nonsense"], ["run", "--seeds", "1", "--jobs", "0"],
    ["replay"], ["replay", "--seed", "-1"], ["replay", "--seed", "1", "--from", "9", "--to", "3"],
    ["replay", "--seed", "1", "--profile", ""],
  ])
  func `wrong arguments end with 64 and say why`(_ arguments: [String]) async throws {
    let tool = try await Tool(["simulate"] + arguments).finish()
    #expect(tool.code == 64)
    #expect(tool.output.isEmpty)
    #expect(!tool.errors.isEmpty)
  }
}
