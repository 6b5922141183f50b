// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CReadersFloor
import Foundation
import LongLinkReaders

@main
struct ReadersBench: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench-readers",
    abstract: "Compares the readers of documents with what they are made of.")

  @Option(help: "Rounds; the medians of their ratios are printed.")
  var rounds = 7
  @Option(help: "The size of the documents, in MiB.")
  var size = 32
  @Option(help: "The size of the document whose memory is measured, in MiB.")
  var long = 1_024

  private static let part = 64 << 10

  func run() throws {
    try measureMemory()
    floor_stop_counting()
    for content in Documents.Content.allCases { try measureXML(content) }
    try measureJSON()
  }

  // MARK: - Speed

  private func measureXML(_ content: Documents.Content) throws {
    let document = Documents.xml(size << 20, content)
    var ratios: [Double] = []
    var speeds: [Double] = []
    for _ in 0..<rounds {
      var counts = floor_counts()
      let bare = seconds { counts = floor_parse(document, document.count, Self.part) }
      var found: UInt64 = 0
      let own = try seconds { found = try readXML(document) }
      guard found > 0, (counts.elements - 1).isMultiple(of: found) else { throw Difference() }
      ratios.append(bare / own)
      speeds.append(Double(document.count) / own / 1e6)
    }
    print(
      "XML, elements of 1 KiB, mostly \(content): \(text(ratios)) of the speed of bare expat",
      "(goal 0.8);",
      "\(Int(median(speeds))) MB/s")
  }

  private func readXML(_ document: [UInt8]) throws -> UInt64 {
    var reader = XMLReader(elements: ["node"], error: "error")
    var count: UInt64 = 0
    for start in stride(from: 0, to: document.count, by: Self.part) {
      reader.feed(document[start..<min(start + Self.part, document.count)])
      while try reader.next() != nil { count += 1 }
    }
    reader.finish()
    while try reader.next() != nil { count += 1 }
    return count
  }

  private func measureJSON() throws {
    let document = Documents.json(size << 20)
    // The decoder takes long.
    let short = Documents.json(4 << 20)
    var toSearch: [Double] = []
    var toDecoder: [Double] = []
    var speeds: [Double] = []
    for _ in 0..<rounds {
      let search = seconds { _ = floor_search(document, document.count, Self.part) }
      var count = 0
      let own = try seconds { count = try readJSON(document) }
      var ships: [Documents.Ship] = []
      let decoder = try seconds {
        ships = try JSONDecoder().decode([Documents.Ship].self, from: Data(short))
      }
      guard count > 0, ships.count == (try readJSON(short)) else { throw Difference() }
      toSearch.append(search / own)
      toDecoder.append(decoder / Double(short.count) / (own / Double(document.count)))
      speeds.append(Double(document.count) / own / 1e9)
    }
    print(
      "JSON, elements of 1 KiB: \(text(toSearch)) of the speed of memchr (goal 0.5, or 1 GB/s);",
      "\(text(speeds)) GB/s; \(text(toDecoder)) times the speed of JSONDecoder")
  }

  private func readJSON(_ document: [UInt8]) throws -> Int {
    var reader = JSONReader(.array)
    var count = 0
    for start in stride(from: 0, to: document.count, by: Self.part) {
      reader.feed(document[start..<min(start + Self.part, document.count)])
      while try reader.next() != nil { count += 1 }
    }
    reader.finish()
    while try reader.next() != nil { count += 1 }
    return count
  }

  // MARK: - Memory

  /// Small elements, and now and then a large one.
  private func measureMemory() throws {
    for largest in [1 << 10, 64 << 10, 1 << 20, 8 << 20] {
      let small = [UInt8]((0..<60).flatMap { Documents.node($0, .text) })
      let tag = Array("<node>".utf8)
      let end = Array("</node>".utf8)
      let piece = [UInt8](repeating: UInt8(ascii: "x"), count: Self.part)
      let before = floor_allocated()
      floor_reset_most()
      var reader = XMLReader(elements: ["node"], error: "error")
      reader.feed("<nodes>".utf8)
      var (fed, count, sinceLarge) = (0, 0, 0)
      func feed(_ bytes: [UInt8]) throws {
        reader.feed(bytes)
        fed += bytes.count
        while try reader.next() != nil { count += 1 }
      }
      while fed < long << 20 {
        try feed(small)
        sinceLarge += small.count
        guard largest > 1 << 10, sinceLarge > 8 * largest else { continue }
        sinceLarge = 0
        try feed(tag)
        for _ in 0..<(largest / piece.count) { try feed(piece) }
        try feed(end)
      }
      let most = Int(floor_most_allocated()) - Int(before)
      let bound = 2 * largest + 256 << 10
      print(
        "XML of \(fed >> 20) MiB, the largest element \(largest >> 10) KiB:",
        "\(most >> 10) KiB were allocated at most (goal \(bound >> 10) KiB)")
      guard count > 0 else { throw Difference() }
    }
  }

  // MARK: - Figures

  /// Two that must agree did not.
  private struct Difference: Error {}

  /// The processor time of this process, which other processes change little.
  private func seconds(_ work: () throws -> Void) rethrows -> Double {
    let begin = clock()
    try work()
    return Double(clock() - begin) / Double(CLOCKS_PER_SEC)
  }

  private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

  private func text(_ values: [Double]) -> String {
    String(
      format: "%.2f (%.2f–%.2f)", median(values), values.min() ?? .nan, values.max() ?? .nan)
  }
}
