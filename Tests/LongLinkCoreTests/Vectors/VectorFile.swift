// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import Testing

/// One vector of `Protocols/Vectors`, in the format that the README there describes.
struct Vector: Sendable, CustomTestStringConvertible {
  enum Step: Sendable {
    case at(Int64)
    case bytes([UInt8])
    case answer(UInt32)
    case ask(UInt32, credit: UInt32?, items: Bool)
    case write(UInt32, [UInt8])
    case finish(UInt32)
    case take(UInt32, Int)
    case cancel(UInt32)
    /// With the terms of ``Vector/terms`` if `once`.
    case admit(UInt32, once: Bool)
    case refuse(UInt32)
    case renew([UInt8])
    case end
    case expect(Expectation)
  }

  var name = ""
  var sender = Role.client
  var isWelcomed = false
  var isShort = false
  var features: Features = []
  var waiting: [UInt32] = []
  var limits: [String: Int] = [:]
  var isDraining = false
  var identifies = false
  /// Whether it is a server with a store, or a client that asks for requests that run once.
  var once = false
  var steps: [Step] = []

  var testDescription: String { name }

  /// All bytes of the vector, in one piece.
  var bytes: [UInt8] {
    steps.flatMap { step -> [UInt8] in
      if case .bytes(let bytes) = step { bytes } else { [] }
    }
  }

  var expectsViolation: Bool {
    steps.contains { step in
      if case .expect(let expectation) = step { expectation.name == "violation" } else { false }
    }
  }

  /// Whether frames behind the last bytes change nothing but what they cause themselves.
  var takesTrailingFrames: Bool {
    let isWhole = RawFrame.wholeLength(bytes) == bytes.count
    let isTimed = steps.contains { step in
      if case .at = step { true } else { false }
    }
    // A short link has no frames that change nothing.
    guard !isShort else { return false }
    return !endsStream && !refusesClient && (expectsViolation ? !isTimed : isWhole)
  }

  private var refusesClient: Bool {
    steps.contains { step in
      if case .refuse = step { true } else { false }
    }
  }

  private var endsStream: Bool {
    steps.contains { step in
      if case .end = step { true } else { false }
    }
  }
}

/// What is expected of a vector: a name, fields, and bytes.
struct Expectation: Equatable, Sendable {
  var name: String
  var fields: [String] = []
  var body: [UInt8]?
  var metadata: [UInt8]?
  var isReply = false
}

enum VectorFailure: Error {
  case noFiles(String)
  case syntax(file: String, line: String)
}

extension Vector {
  /// What a server under test tells its client about keys, and what a client under test was told.
  static let terms = OnceTerms(
    space: KeySpace([UInt8](1...16))!, retention: 60_000, time: 1_000)

  /// The same as fields of a welcome.
  static let statedTerms: [UInt8] =
    [0x62, 16] + (1...16) + [0x68, 0xE0, 0xD4, 0x03, 0x70, 0xE8, 0x07]

  static let directory = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Protocols/Vectors")

  /// Every vector there is, by file and line.
  static func all() throws -> [Vector] {
    let files = try FileManager.default.contentsOfDirectory(
      at: directory, includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "txt" }.sorted { $0.path < $1.path }
    guard !files.isEmpty else { throw VectorFailure.noFiles(directory.path) }
    return try files.flatMap { file in
      try parse(String(contentsOf: file, encoding: .utf8), file: file.lastPathComponent)
    }
  }

  private static func parse(_ text: String, file: String) throws -> [Vector] {
    var vectors: [Vector] = []
    for block in text.split(separator: "\n\n") {
      let lines = block.split(separator: "\n").filter { !$0.hasPrefix("#") }
      guard !lines.isEmpty else { continue }
      var vector = Vector()
      for line in lines {
        guard let colon = line.firstIndex(of: ":") else {
          throw VectorFailure.syntax(file: file, line: String(line))
        }
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        guard vector.take(line[..<colon], String(value)) else {
          throw VectorFailure.syntax(file: file, line: String(line))
        }
      }
      vectors.append(vector)
    }
    return vectors
  }

  private mutating func take(_ key: Substring, _ value: String) -> Bool {
    let words = value.split(separator: " ").map(String.init)
    switch key {
    case "name": name = value
    case "about": break
    case "from": sender = value == "client" ? .client : .server
    case "state":
      isShort = value.hasPrefix("short")
      isWelcomed = value == "welcomed" || value == "short"
      if value == "short" { features = [.metadata, .fragments, .streams] }
    case "features":
      if words.contains("metadata") { features.insert(.metadata) }
      if words.contains("fragments") { features.insert(.fragments) }
      if words.contains("streams") { features.insert(.streams) }
      if words.contains("renewal") { features.insert(.renewal) }
      if words.contains("once") { features.insert(.once) }
    case "waiting": waiting = words.compactMap { UInt32($0) }
    case "limits":
      for word in words {
        let parts = word.split(separator: "=")
        guard parts.count == 2, let number = Int(parts[1]) else { return false }
        limits[String(parts[0])] = number
      }
    case "draining": isDraining = value == "yes"
    case "identifies": identifies = value == "yes"
    case "once": once = value == "yes"
    case "at":
      guard let time = Int64(value) else { return false }
      steps.append(.at(time))
    case "hex":
      guard let bytes = Vector.bytes(of: words) else { return false }
      steps.append(.bytes(bytes))
    case "renew":
      guard let credential = Vector.bytes(of: words) else { return false }
      steps.append(.renew(credential))
    case "end": steps.append(.end)
    case "expect": return takeExpectation(words)
    default: return takeAct(key, words)
    }
    return true
  }

  /// What the receiver's application does, with the serial of a request or another number.
  private mutating func takeAct(_ key: Substring, _ words: [String]) -> Bool {
    guard let serial = words.first.flatMap({ UInt32($0) }) else { return false }
    switch key {
    case "answer": steps.append(.answer(serial))
    case "ask":
      let credit = words.first { $0.hasPrefix("credit=") }.map { UInt32($0.dropFirst(7)) }
      if case .some(nil) = credit { return false }
      steps.append(.ask(serial, credit: credit ?? nil, items: words.contains("items")))
    case "write":
      guard let item = Vector.bytes(of: Array(words.dropFirst())) else { return false }
      steps.append(.write(serial, item))
    case "finish": steps.append(.finish(serial))
    case "take":
      guard words.count == 2, let count = Int(words[1]) else { return false }
      steps.append(.take(serial, count))
    case "cancel": steps.append(.cancel(serial))
    case "admit": steps.append(.admit(serial, once: words.contains("once")))
    case "refuse": steps.append(.refuse(serial))
    default: return false
    }
    return true
  }

  private mutating func takeExpectation(_ words: [String]) -> Bool {
    guard var first = words.first else { return false }
    var rest = words.dropFirst()
    var expectation = Expectation(name: "")
    if first == "reply" {
      expectation.isReply = true
      guard let next = rest.popFirst() else { return false }
      first = next
    }
    expectation.name = first
    var times = 1
    for word in rest {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      switch parts[0] {
      case "body", "metadata":
        let pieces = parts[1].split(separator: "+").map(String.init)
        guard let bytes = Vector.bytes(of: pieces) else { return false }
        if parts[0] == "body" { expectation.body = bytes } else { expectation.metadata = bytes }
      case "times": times = Int(parts[1]) ?? 0
      default: expectation.fields.append(word)
      }
    }
    for _ in 0..<times { steps.append(.expect(expectation)) }
    return times > 0
  }

  /// Hexadecimal words, each of which may say how many times it stands.
  static func bytes(of words: [String]) -> [UInt8]? {
    var result: [UInt8] = []
    for word in words {
      let parts = word.split(separator: "*")
      let digits = Array(parts[0].utf8)
      guard digits.count.isMultiple(of: 2) else { return nil }
      var piece: [UInt8] = []
      for index in stride(from: 0, to: digits.count, by: 2) {
        let pair = String(decoding: digits[index..<index + 2], as: UTF8.self)
        guard let byte = UInt8(pair, radix: 16) else { return nil }
        piece.append(byte)
      }
      let times = parts.count > 1 ? Int(parts[1]) : 1
      guard let times else { return nil }
      for _ in 0..<times { result += piece }
    }
    return result
  }
}

extension RawFrame {
  /// How many of the bytes are whole frames, judged by their lengths alone.
  static func wholeLength(_ bytes: [UInt8]) -> Int {
    var offset = 0
    while bytes.count - offset >= 16 {
      let length = Int(number(bytes[offset + 8..<offset + 12]))
      guard bytes.count - offset - 16 >= length else { break }
      offset += 16 + length
    }
    return offset
  }
}
