// SPDX-License-Identifier: Apache-2.0

import Corpus
public import CorpusOfSwift
import Foundation
public import LongLinkProtobuf
import LongLinkProtobufC
import SwiftProtobuf
import Testing

/// What an implementation makes of a body.
enum Outcome: Equatable {
  case written([UInt8])
  case refused
}

/// What LongLink's values and SwiftProtobuf's make of a body of one message.
struct Codec: Sendable {
  let values: @Sendable ([UInt8]) -> Swift.Result<[UInt8], BodyError>
  let swift: @Sendable ([UInt8]) -> Outcome

  init<Value: BodyEncodable & BodyDecodable & SendableMetatype, Message: ProtobufBody>(
    _ value: Value.Type, _ message: Message.Type
  ) {
    values = { body in
      Swift.Result { () throws(BodyError) in try Value(copying: body).encodedBytes() }
    }
    swift = { body in
      guard let bytes = try? Message(copying: body).encodedBytes() else { return .refused }
      return .written(bytes)
    }
  }

  static let all: [String: Codec] = [
    "Choices": Codec(Choices.self, Corpus_Choices.self),
    "Five": Codec(Five.self, Corpus_Five.self),
    "Known": Codec(Known.self, Corpus_Known.self),
    "Lists": Codec(Lists.self, Corpus_Lists.self),
    "Maps": Codec(Maps.self, Corpus_Maps.self),
    "Names": Codec(Names.self, Corpus_Names.self),
    "Optionals": Codec(Optionals.self, Corpus_Optionals.self),
    "Result": Codec(Corpus.Result.self, Corpus_Result.self),
    "Scalars": Codec(Scalars.self, Corpus_Scalars.self),
    "Tree": Codec(Tree.self, Corpus_Tree.self),
  ]
}

extension Corpus_Choices: ProtobufBody {}
extension Corpus_Five: ProtobufBody {}
extension Corpus_Known: ProtobufBody {}
extension Corpus_Lists: ProtobufBody {}
extension Corpus_Maps: ProtobufBody {}
extension Corpus_Names: ProtobufBody {}
extension Corpus_Optionals: ProtobufBody {}
extension Corpus_Result: ProtobufBody {}
extension Corpus_Scalars: ProtobufBody {}
extension Corpus_Tree: ProtobufBody {}

/// What Python's protobuf package has made of a body.
struct Vector: Sendable, CustomTestStringConvertible {
  let message: String
  let outcome: String
  let body: [UInt8]
  let rest: [String]
  let line: Int

  var testDescription: String { "vectors.txt:\(line): \(message) \(outcome)" }

  static let all: [Vector] = {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Vectors/vectors.txt")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").enumerated().compactMap { index, line in
      let words = line.split(separator: " ").map(String.init)
      guard line.first != "#", words.count >= 3 else { return nil }
      return Vector(
        message: words[0], outcome: words[1], body: Vector.bytes(words[2]),
        rest: Array(words.dropFirst(3)), line: index + 1)
    }
  }()

  static func bytes(_ digits: String) -> [UInt8] {
    let digits = digits == "-" ? [] : Array(digits.utf8)
    return stride(from: 0, to: digits.count, by: 2).compactMap { index in
      UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16)
    }
  }
}

extension BodyDecodable {
  fileprivate init(copying bytes: [UInt8]) throws(BodyError) {
    // The elements are bytes: there is no padding between them.
    try unsafe self.init(decoding: bytes.span.bytes)
  }
}

@Suite struct AgreementTests {
  @Test func `the corpus is there`() {
    #expect(Vector.all.count > 500)
    #expect(Set(Vector.all.map(\.message)) == Set(Codec.all.keys))
  }

  @Test func `all three read the same bodies and write the same bytes`() throws {
    for vector in Vector.all where vector.outcome != "prefixes" {
      let codec = try #require(Codec.all[vector.message])
      let (kept, left): (Outcome, Outcome)
      switch vector.outcome {
      case "same": (kept, left) = (.written(vector.body), .written(vector.body))
      case "becomes":
        let bytes = Vector.bytes(vector.rest[0])
        (kept, left) = (.written(bytes), .written(bytes))
      case "unknown":
        // SwiftProtobuf keeps unknown fields, and libprotobuf-c's values leave them out.
        (kept, left) = (
          .written(Vector.bytes(vector.rest[0])), .written(Vector.bytes(vector.rest[1]))
        )
      default: (kept, left) = (.refused, .refused)
      }
      #expect(codec.swift(vector.body) == kept, "SwiftProtobuf, \(vector.testDescription)")
      expect(codec.values(vector.body), left, vector.testDescription)
    }
  }

  @Test func `all three read the same from bodies that are cut off at any byte`() throws {
    for vector in Vector.all where vector.outcome == "prefixes" {
      let codec = try #require(Codec.all[vector.message])
      for (count, digit) in (vector.rest.first ?? "-").enumerated() where digit != "-" {
        let prefix = Array(vector.body.prefix(count))
        let swift = codec.swift(prefix)
        #expect(
          (swift != .refused) == (digit == "1"),
          "SwiftProtobuf, \(vector.testDescription), \(count) bytes")
        expect(codec.values(prefix), swift, "\(vector.testDescription), \(count) bytes")
      }
    }
  }

  /// Compares, but for the differences that the documentation lists.
  private func expect(
    _ result: Swift.Result<[UInt8], BodyError>, _ expected: Outcome, _ place: String
  ) {
    switch (result, expected) {
    case (.success(let bytes), _):
      #expect(.written(bytes) == expected, "\(place)")
    case (.failure, .refused):
      break
    case (.failure(let error), .written):
      let isListed =
        [.interiorNUL, .wrongType].contains(error.code)
        || error.detail?.hasSuffix("occurs twice") == true
        || ["wire type 3", "wire type 4"].contains(error.detail)
      #expect(isListed, "\(place): \(error)")
    }
  }
}

@Suite struct DifferenceTests {
  @Test func `a string with a NUL is refused both ways`() {
    let body: [UInt8] = [0x72, 2, 0x61, 0]
    #expect(Codec.all["Scalars"]?.swift(body) == .written(body))
    #expect(throws: BodyError.self) { try Scalars(copying: body) }
    #expect(throws: BodyError.self) { try Scalars(s: "a\0").encodedBytes() }
  }

  @Test func `a field of another wire type is refused, though others skip it`() {
    let body: [UInt8] = [0x1d, 1, 2, 3, 4]
    #expect(Codec.all["Scalars"]?.swift(body) == .written(body))
    #expect(throws: BodyError.self) { try Scalars(copying: body) }
  }

  @Test func `a repeated singular message field is refused, though others merge it`() {
    let body: [UInt8] = [0x12, 2, 0x08, 1, 0x12, 2, 0x12, 0]
    #expect(Codec.all["Tree"]?.swift(body) == .written([0x12, 4, 0x08, 1, 0x12, 0]))
    #expect(throws: BodyError.self) { try Tree(copying: body) }
  }

  @Test func `a group is refused, though others skip it`() {
    let body: [UInt8] = [0x9b, 0x06, 0x9c, 0x06]
    #expect(Codec.all["Scalars"]?.swift(body) == .written(body))
    #expect(throws: BodyError.self) { try Scalars(copying: body) }
  }

  @Test func `keys that Swift compares as equal become one entry, as in SwiftProtobuf`() throws {
    // é as one character, and as an e with an accent after it.
    let (composed, decomposed): ([UInt8], [UInt8]) = ([0xc3, 0xa9], [0x65, 0xcc, 0x81])
    func entry(_ key: [UInt8], _ value: UInt8) -> [UInt8] {
      [0x0a, UInt8(key.count + 5), 0x0a, UInt8(key.count)] + key + [0x12, 1, value]
    }
    for (first, last) in [(composed, decomposed), (decomposed, composed)] {
      let body = entry(first, 0x31) + entry(last, 0x32)
      let maps = try Maps(copying: body)
      #expect(maps.texts.count == 1)
      #expect(try maps.encodedBytes() == entry(first, 0x32))
      #expect(Codec.all["Maps"]?.swift(body) == .written(entry(first, 0x32)))
    }
    // So equal messages need not have the same bytes.
    let (one, other) = (Maps(texts: ["\u{e9}": "1"]), Maps(texts: ["e\u{301}": "1"]))
    #expect(one == other)
    #expect(try one.encodedBytes() != other.encodedBytes())
  }
}
