// SPDX-License-Identifier: Apache-2.0

import LongLinkReaders
import Testing

/// What a reader returns for a document, and what it throws at last.
struct Outcome<Value: Equatable>: Equatable {
  var values: [Value] = []
  var error: ReaderError?
}

/// A way to cut a document into parts.
enum Cutting: CustomStringConvertible {
  case whole
  /// In one part, with the end of the document, before anything is read.
  case finished
  case bytes
  case pairs
  case random(seed: UInt64, longest: Int)

  static let several: [Cutting] =
    [.whole, .finished, .bytes, .pairs]
    + (1...12).map { .random(seed: $0, longest: $0.isMultiple(of: 2) ? 7 : 90) }

  var description: String {
    switch self {
    case .whole: "whole"
    case .finished: "whole, and finished first"
    case .bytes: "byte by byte"
    case .pairs: "two bytes at a time"
    case .random(let seed, let longest): "seed \(seed), up to \(longest)"
    }
  }

  /// Whether what is ready is read behind each part.
  var readsBetween: Bool { if case .finished = self { false } else { true } }

  func parts(of document: [UInt8]) -> [ArraySlice<UInt8>] {
    var parts: [ArraySlice<UInt8>] = []
    var place = 0
    var chance = Chance(seed: 0)
    if case .random(let seed, _) = self { chance = Chance(seed: seed) }
    while place < document.count {
      let count =
        switch self {
        case .whole, .finished: document.count
        case .bytes: 1
        case .pairs: 2
        case .random(_, let longest): Int.random(in: 1...longest, using: &chance)
        }
      let end = min(document.count, place + count)
      parts.append(document[place..<end])
      place = end
    }
    return parts
  }
}

/// SplitMix64, so that a seed gives the same cuts everywhere.
struct Chance: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}

/// A document of XML and what is chosen in it.
struct XMLCase: Sendable, CustomTestStringConvertible {
  var document: [UInt8]
  var names = ["node"]
  var error: String?
  var children = true
  var limits = XMLReader.Limits()

  init(
    _ document: some Sequence<UInt8>, _ names: String..., error: String? = nil,
    children: Bool = true, limits: XMLReader.Limits = XMLReader.Limits()
  ) {
    self.document = Array(document)
    if !names.isEmpty { self.names = names }
    self.error = error
    self.children = children
    self.limits = limits
  }

  init(
    _ text: String, _ names: String..., error: String? = nil, children: Bool = true,
    limits: XMLReader.Limits = XMLReader.Limits()
  ) {
    self.init(text.utf8, error: error, children: children, limits: limits)
    if !names.isEmpty { self.names = names }
  }

  var testDescription: String { String(decoding: document.prefix(60), as: UTF8.self) }

  var reader: XMLReader {
    XMLReader(elements: names, error: error, children: children, limits: limits)
  }

  func read(_ cutting: Cutting = .whole) -> Outcome<XMLReader.Element> {
    var reader = reader
    var outcome = Outcome<XMLReader.Element>()
    do throws(ReaderError) {
      for part in cutting.parts(of: document) {
        reader.feed(part)
        while cutting.readsBetween, let element = try reader.next() {
          outcome.values.append(element)
        }
      }
      reader.finish()
      while let element = try reader.next() { outcome.values.append(element) }
    } catch {
      outcome.error = error
    }
    return outcome
  }
}

/// A document of JSON and what is read of it.
struct JSONCase: Sendable, CustomTestStringConvertible {
  var document: [UInt8]
  var shape: JSONReader.Shape
  var limits = JSONReader.Limits()

  init(
    _ text: String, _ shape: JSONReader.Shape = .array,
    limits: JSONReader.Limits = JSONReader.Limits()
  ) {
    document = Array(text.utf8)
    self.shape = shape
    self.limits = limits
  }

  var testDescription: String { String(decoding: document.prefix(60), as: UTF8.self) }

  func read(_ cutting: Cutting = .whole) -> Outcome<String> {
    var reader = JSONReader(shape, limits: limits)
    var outcome = Outcome<String>()
    do throws(ReaderError) {
      for part in cutting.parts(of: document) {
        reader.feed(part)
        while cutting.readsBetween, let value = try reader.next() {
          outcome.values.append(String(decoding: value, as: UTF8.self))
        }
      }
      reader.finish()
      while let value = try reader.next() {
        outcome.values.append(String(decoding: value, as: UTF8.self))
      }
    } catch {
      outcome.error = error
    }
    return outcome
  }
}
