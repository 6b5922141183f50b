// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDialects

/// What a vector of `Protocols/Vectors` sends, and what is wrong with it.
struct VectorStream: Sendable {
  private(set) var name = ""
  private(set) var sender = Role.client
  private(set) var state = ""
  /// What was agreed to, a bit each.
  private(set) var features: UInt8 = 0
  /// Whether the client asks that its requests can run once.
  private(set) var asksForOnce = false
  private(set) var waiting: [UInt32] = []
  /// The requests of the receiver that open streams, each with its metadata.
  private(set) var asked: [(serial: UInt32, metadata: [UInt8])] = []
  private(set) var bytes: [UInt8] = []
  private(set) var expected: [String] = []
  /// Whether there is more to it than bytes that one side sends.
  private(set) var hasMore = false

  static let vectors = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Protocols/Vectors")

  static func layout(_ name: String) -> URL { vectors.appending(path: "Dialects/\(name).json") }

  static func dialect(_ name: String) throws -> FrameDialect {
    try JSONDecoder().decode(FrameDialect.self, from: Data(contentsOf: layout(name)))
  }

  /// The vectors of a file, in order.
  static func all(in file: String) throws -> [VectorStream] {
    let text = try String(contentsOf: vectors.appending(path: file), encoding: .utf8)
    return text.split(separator: "\n\n").compactMap { block in
      let lines = block.split(separator: "\n").filter { !$0.hasPrefix("#") }
      return lines.isEmpty ? nil : VectorStream(lines)
    }
  }

  private init(_ lines: [Substring]) {
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1)
      let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
      switch parts[0] {
      case "name": name = String(value)
      case "from": sender = value == "client" ? .client : .server
      case "state": state = String(value)
      case "features":
        features =
          (value.contains("metadata") ? 1 : 0) | (value.contains("fragments") ? 2 : 0)
          | (value.contains("streams") ? 4 : 0) | (value.contains("renewal") ? 8 : 0)
          | (value.contains("once") ? 16 : 0)
      case "once": asksForOnce = value == "yes"
      case "waiting": waiting = value.split(separator: " ").compactMap { UInt32($0) }
      case "ask": asked.append(VectorStream.question(value))
      case "expect": expected.append(String(value))
      case "hex":
        for word in value.split(separator: " ") {
          let parts = word.split(separator: "*")
          let piece = HexBytes.of(parts[0])
          let times = parts.count > 1 ? Int(parts[1]) ?? 1 : 1
          for _ in 0..<times { bytes += piece }
        }
      case "at", "answer", "limits", "draining", "end": hasMore = true
      default: break
      }
    }
  }

  /// The serial and the metadata of a request such as `50 credit=4000 items`.
  private static func question(_ text: Substring) -> (serial: UInt32, metadata: [UInt8]) {
    let words = text.split(separator: " ")
    var metadata: [UInt8] = []
    for word in words.dropFirst() {
      if word == "items" { metadata += [7 << 3, 1] }
      guard word.hasPrefix("credit="), var rest = UInt32(word.dropFirst(7)) else { continue }
      metadata.append(6 << 3)
      while rest >= 0x80 {
        metadata.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      metadata.append(UInt8(rest))
    }
    return (UInt32(words[0]) ?? 0, metadata)
  }

  /// The rules that are broken, by their names.
  var broken: [String] {
    expected.compactMap { line in
      let words = line.split(separator: " ")
      guard let first = words.first, first == "violation" || first == "damaged" else { return nil }
      return String(words[1])
    }
  }

  /// A hello that offers metadata, fragments and streams, and a welcome with these features, all of
  /// which the hello offers.
  static func greeting(of features: UInt8) -> RecordedRun.Connection {
    func frame(_ kind: UInt32, _ features: UInt8, _ rest: [UInt8] = []) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: 0, serial: 3, body: [8, 1, 16, features] + rest)
    }
    // Whoever agrees to requests that run once states where their keys are kept.
    let terms = [0x62, 16] + [UInt8](repeating: 1, count: 16) + [0x68, 1, 0x70, 1]
    return [
      (.client, frame(0x0A, 7 | features)),
      (.server, frame(0x0B, features, features & 16 == 0 ? [] : terms)),
    ]
  }

  /// The bytes in parts, each sent by itself.
  func parts(of size: Int) -> [(sender: Role, bytes: [UInt8])] {
    stride(from: 0, to: bytes.count, by: size).map { start in
      (sender, Array(bytes[start..<min(start + size, bytes.count)]))
    }
  }
}

/// Hexadecimal digits, two for each byte.
enum HexBytes {
  static func of(_ digits: some StringProtocol) -> [UInt8] {
    let values = digits.compactMap(\.hexDigitValue)
    return stride(from: 0, to: values.count - 1, by: 2).map { index in
      UInt8(values[index] << 4 | values[index + 1])
    }
  }
}
