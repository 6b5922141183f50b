// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkUploadMessages
import Testing

/// The messages, against what Python's protobuf package makes of them: `Protocols/Vectors/Uploads`.
@Suite struct MessageTests {
  private typealias Message = any (BodyEncodable & BodyDecodable & Sendable).Type

  private static let messages: [Message] = [
    CreateRequest.self, Part.self, CreateResponse.self, StatusRequest.self, StatusResponse.self,
    AppendRequest.self, AppendResponse.self, AppendConflict.self, FinishRequest.self,
    FinishResponse.self, AbortRequest.self, StoredUpload.self, StoredState.self, StoredFinish.self,
  ]

  private struct Line {
    let message: Message
    let outcome: Substring
    let body: [UInt8]
    /// The value, or what can be read.
    let rest: String

    init?(_ text: Substring) {
      let words = text.split(separator: " ")
      let message = MessageTests.messages.first { "\($0)" == words[0] }
      guard words.count > 2, let message else { return nil }
      self.message = message
      outcome = words[1]
      let digits = Array(words[2] == "-" ? "" : words[2])
      body = stride(from: 0, to: digits.count, by: 2).compactMap { place in
        UInt8(String(digits[place..<place + 2]), radix: 16)
      }
      rest = words.count > 3 ? String(words[3]) : ""
    }
  }

  private static func lines() throws -> [Line] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Protocols/Vectors/Uploads/messages.txt")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
      .filter { !$0.hasPrefix("#") }.map { try #require(Line($0), "\($0)") }
  }

  private static func decode<Value: BodyEncodable & BodyDecodable>(
    _ type: Value.Type, _ body: [UInt8]
  ) throws -> Value {
    try unsafe Value(decoding: body.span.bytes)
  }

  /// A value as `generate.py` writes it.
  private static func text(_ value: Any) -> String {
    if type(of: value) == [UInt8].self, let bytes = value as? [UInt8] { return bytes.hexadecimal }
    switch value {
    case let text as String: return Array(text.utf8).hexadecimal
    case let state as UploadState: return "\(state.rawValue)"
    case let flag as Bool: return flag ? "1" : "0"
    case let number as UInt64: return "\(number)"
    default: break
    }
    let mirror = Mirror(reflecting: value)
    let values = mirror.children.map { text($0.value) }
    switch mirror.displayStyle {
    case .optional: return values.first ?? "-"
    case .collection: return "[" + values.joined(separator: ",") + "]"
    default:
      let fields = zip(mirror.children, values).map { "\($0.label ?? "")=\($1)" }
      return "{" + fields.joined(separator: ";") + "}"
    }
  }

  /// A message behind another byte.
  private struct Behind: BodyEncodable {
    let message: any BodyEncodable
    var encodedByteCount: Int {
      get throws(BodyError) { try message.encodedByteCount + 1 }
    }

    func encode(into output: inout OutputRawSpan) throws(BodyError) {
      output.append(0xEE)
      try message.encode(into: &output)
    }
  }

  @Test func `values are read and written as the description says`() throws {
    let lines = try Self.lines()
    for line in lines where line.outcome == "writes" || line.outcome == "reads" {
      let value = try Self.decode(line.message, line.body)
      #expect(Self.text(value) == line.rest)
      let written = try value.encodedBytes()
      #expect(try Behind(message: value).encodedBytes() == [0xEE] + written)
      if line.outcome == "writes" {
        #expect(written == line.body, "\(line.message) \(line.rest)")
      } else {
        #expect(try Self.text(Self.decode(line.message, written)) == line.rest)
      }
    }
    let found = Dictionary(grouping: lines) { "\($0.message)" }.mapValues { Set($0.map(\.outcome)) }
    #expect(found.count == Self.messages.count)
    #expect(found.values.allSatisfy { $0 == ["writes", "reads", "prefixes", "refuses"] })
  }

  @Test func `a body is read up to its end or refused`() throws {
    for line in try Self.lines() {
      switch line.outcome {
      case "refuses": #expect(throws: BodyError.self) { try Self.decode(line.message, line.body) }
      case "prefixes":
        let found = (0...line.body.count).map { count in
          (try? Self.decode(line.message, Array(line.body[..<count]))) == nil ? "0" : "1"
        }
        #expect(found.joined() == line.rest, "\(line.message) \(line.body.hexadecimal)")
      default: break
      }
    }
  }

  @Test func `an error says where and what`() {
    let errors: [(message: Message, body: [UInt8], error: BodyError)] = [
      (AbortRequest.self, [0x0A, 5, 0x61], BodyError(.truncated, at: 1)),
      (AbortRequest.self, [0x08, 1], BodyError(.wrongType, at: 0, detail: "field 1")),
      (AbortRequest.self, [0x0A, 3, 0x61, 0x62, 0xFF], BodyError(.invalidUTF8, at: 4)),
      // Python reads these two: a C program would end the text here, and lose the first message.
      (AbortRequest.self, [0x0A, 2, 0x61, 0], BodyError(.interiorNUL, at: 3)),
      (
        StoredUpload.self, [0x0A, 0, 0x0A, 0],
        BodyError(.notRepresentable, at: 2, detail: "field 1 occurs twice")
      ),
    ]
    for (message, body, error) in errors {
      #expect(throws: error) { try Self.decode(message, body) }
    }
  }

  @Test func `a text with U+0000 is not written`() throws {
    for message: any BodyEncodable in [
      AbortRequest(id: "a\0b"), FinishResponse(names: ["", "\0"]),
      StoredUpload(request: CreateRequest(parts: [Part(contentType: "ß\0")])),
    ] {
      let error = BodyError(.interiorNUL, detail: "a string to be sent contains U+0000")
      #expect(throws: error) { try message.encodedBytes() }
      #expect(throws: error) { try message.encodedByteCount }
    }
  }

  // MARK: Memory

  /// An account with room for everything.
  private final class Account: DecodingAccount {
    let refusal = ""
    func take(_ count: Int, besides counted: Int) -> Bool { true }
    func most(besides size: Int) -> Int { .max }
    func giveBack(_ count: Int) {}
  }

  /// What a message counts as, besides what it holds.
  private static func size<Value>(_ type: Value.Type) -> Int { 2 * MemoryLayout<Value>.stride + 24 }

  /// The memory that decoding takes, if that is more than what is free.
  private static func cost(
    _ type: (some BodyEncodable & BodyDecodable).Type, _ value: some BodyEncodable
  ) throws -> Int {
    let body = try value.encodedBytes()
    var memory = DecodingMemory(for: type, account: Account())
    _ = try unsafe type.init(decoding: body.span.bytes, charging: &memory)
    return try #require(memory.settle()?.bytes) + DecodingMemory.free
  }

  @Test func `what a body becomes is counted`() throws {
    let names = { FinishResponse(names: [String](repeating: $0, count: 100)) }
    let (short, long) = (String(repeating: "a", count: 15), String(repeating: "a", count: 16))
    let response = Self.size(FinishResponse.self)
    #expect(try Self.cost(FinishResponse.self, names("")) == response + 100 * 32)
    #expect(try Self.cost(FinishResponse.self, names(short)) == response + 100 * 32)
    #expect(try Self.cost(FinishResponse.self, names(long)) == response + 100 * (80 + 16))
    let finish = FinishRequest(sha256: [UInt8](repeating: 1, count: 5_000))
    #expect(try Self.cost(FinishRequest.self, finish) == Self.size(FinishRequest.self) + 5_080)
    let create = CreateRequest(parts: [Part](repeating: Part(), count: 100))
    let parts = Self.size(CreateRequest.self) + 100 * Self.size(Part.self)
    #expect(try Self.cost(CreateRequest.self, create) == parts)
    let upload = StoredUpload(request: create)
    #expect(try Self.cost(StoredUpload.self, upload) == Self.size(StoredUpload.self) + parts)
  }

  @Test func `a body that becomes more than 64 MiB is refused`() throws {
    #expect(CreateRequest.decodingMemoryLimit == 67_108_864)
    let room = CreateRequest.decodingMemoryLimit - Self.size(CreateRequest.self)
    let most = room / Self.size(Part.self)
    var body = [[UInt8]](repeating: [0x0A, 0], count: most).flatMap(\.self)
    #expect(try Self.decode(CreateRequest.self, body).parts.count == most)
    body += [0x0A, 0]
    let error = #expect(throws: BodyError.self) { try Self.decode(CreateRequest.self, body) }
    #expect(error?.code == .tooLarge)
    #expect(error?.detail?.contains("CreateRequest.decodingMemoryLimit") == true)
  }
}
