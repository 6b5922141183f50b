// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchDriver
import Foundation

/// Runs all subjects on the same work, one after the other in each round, and compares them.
struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Compares LongLink with a floor in C and with other libraries.")

  @Flag(help: "Fewer subjects, bodies of 64 bytes, short runs: under two minutes.")
  var quick = false
  @Option(help: "Rounds; each runs every subject once. Default 12, or 5 when quick.")
  var rounds: Int?
  @Option(help: "Seconds that each run counts. Default 0.5, or 0.3 when quick.")
  var seconds: Double?
  @Option(help: "Only subjects whose names contain this, and the floor; may be repeated.")
  var only: [String] = []
  @Option(help: "Only work whose key begins with this, such as b or b64; may be repeated.")
  var work: [String] = []
  @Option(help: "Only this placement.")
  var placement: Placement?
  @Option(help: "The program that speaks gRPC.")
  var grpc: String?
  @Option(help: "Write every run and summary to this file.")
  var json: String?
  @Option(help: "Write the ratios to this file, as tables in Markdown.")
  var markdown: String?
  @Option(help: "Draw a chart into this file.")
  var svg: String?

  func validate() throws {
    guard (rounds ?? 1) >= 1, (seconds ?? 1) > 0 else {
      throw ValidationError("Rounds and seconds have to be greater than 0.")
    }
  }

  func run() throws {
    let hasRedis = Runner.hasRedis
    if !hasRedis { Bench.note("redis is skipped: redis-server is not installed") }
    if grpc == nil { Bench.note("grpc-swift is skipped: it was not built") }
    let subjects = Subject.all(isQuick: quick, grpc: grpc, hasRedis: hasRedis).filter { subject in
      only.isEmpty || subject.name == Subject.floor.name
        || only.contains { subject.name.contains($0) }
    }
    let works = (quick ? Work.quick : Work.all).filter { candidate in
      work.isEmpty || work.contains { candidate.key.hasPrefix($0) }
    }
    let placements = Placement.allCases.filter {
      ($0 == .free || hasTaskset) && (placement == nil || placement == $0)
    }
    let runs = try measure(subjects, works, placements)
    let summaries = summarize(runs, subjects, works, placements)
    let checksums = try work.isEmpty ? measureChecksums() : []
    let growth = try work.isEmpty && !quick ? runner.growth(items: 16_384) : nil
    let report = Report(
      machine: Bench.machine, summaries: summaries, checksums: checksums, growth: growth,
      runs: runs)
    print("\(report.machine)\n\n\(Table(summaries).text)")
    for checksum in checksums { print(checksum.text) }
    if let growth { print(growth.text) }
    if let json { try report.encoded.write(to: URL(fileURLWithPath: json)) }
    if let markdown {
      try RatioTable(summaries).text.write(toFile: markdown, atomically: true, encoding: .utf8)
    }
    if let svg {
      try Chart(summaries, title: report.machine).svg
        .write(toFile: svg, atomically: true, encoding: .utf8)
    }
  }

  private var runner: Runner {
    Runner(folder: Bench.folder, seconds: seconds ?? (quick ? 0.3 : 0.5), warmUp: 0.2)
  }

  private func measure(
    _ subjects: [Subject], _ works: [Work], _ placements: [Placement]
  ) throws -> [Run] {
    let runner = runner
    let rounds = rounds ?? (quick ? 5 : 12)
    var runs: [Run] = []
    for placement in placements {
      for work in works {
        for round in 1...rounds {
          Bench.note("\(work.name), \(placement.rawValue), round \(round) of \(rounds)")
          for subject in subjects where subject.isMeasured(work, placement) {
            runs.append(try runner.run(subject, work, placement, round: round))
          }
        }
      }
    }
    return runs
  }

  private func measureChecksums() throws -> [Adler32Ratio] {
    let checksums = try [1_024, 65_536].compactMap {
      try Adler32Ratio.measure(size: $0, rounds: rounds ?? 5)
    }
    if checksums.isEmpty { Bench.note("zlib's adler32 is skipped: zlib is not installed") }
    return checksums
  }

  private func summarize(
    _ runs: [Run], _ subjects: [Subject], _ works: [Work], _ placements: [Placement]
  ) -> [Summary] {
    placements.flatMap { placement in
      works.flatMap { work in
        let here = runs.filter { $0.work == work && $0.placement == placement }
        return subjects.compactMap { subject in
          Summary(
            here.filter { $0.subject == subject.name },
            floor: here.filter { $0.subject == Subject.floor.name })
        }
      }
    }
  }

  private var hasTaskset: Bool {
    let found = FileManager.default.isExecutableFile(atPath: "/usr/bin/taskset")
    if !found { Bench.note("placement one is skipped: taskset is not installed") }
    return found
  }
}

extension Placement: ExpressibleByArgument {}

/// The results of all runs.
private struct Report: Codable {
  let machine: String
  let summaries: [Summary]
  let checksums: [Adler32Ratio]
  let growth: MemoryGrowth?
  let runs: [Run]

  var encoded: Data {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
      return try encoder.encode(self)
    }
  }
}
