// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

/// A vector of `Protocols/Vectors/Dialects`.
struct DialectVector: Sendable, CustomTestStringConvertible {
  private(set) var name = ""
  private(set) var dialect = ""
  private(set) var sender = Role.client
  /// Whether the bytes are those that a sender of the expected frames writes.
  private(set) var isWritten = false
  private(set) var bytes: [UInt8] = []
  private(set) var expected: [String] = []

  var testDescription: String { name }

  static let directory = Vector.directory.appending(path: "Dialects")
  static let dialects = ["guarded", "bare", "small", "lines", "mixed", "framed"]

  static func dialect(_ name: String) throws -> FrameDialect {
    let data = try Data(contentsOf: directory.appending(path: "\(name).json"))
    return try JSONDecoder().decode(FrameDialect.self, from: data)
  }

  static func all() throws -> [DialectVector] {
    try dialects.flatMap { name in
      let file = directory.appending(path: "\(name).txt")
      let text = try String(contentsOf: file, encoding: .utf8)
      return try text.split(separator: "\n\n").compactMap { block in
        let lines = block.split(separator: "\n").filter { !$0.hasPrefix("#") }
        return lines.isEmpty ? nil : try DialectVector(lines, file: file.lastPathComponent)
      }
    }
  }

  private init(_ lines: [Substring], file: String) throws {
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else {
        throw VectorFailure.syntax(file: file, line: String(line))
      }
      let value = String(line[line.index(after: colon)...].drop { $0 == " " })
      switch line[..<colon] {
      case "name": name = value
      case "about": break
      case "dialect": dialect = value
      case "from": sender = value == "client" ? .client : .server
      case "written": isWritten = value == "yes"
      case "hex":
        guard let more = Vector.bytes(of: value.split(separator: " ").map(String.init)) else {
          throw VectorFailure.syntax(file: file, line: String(line))
        }
        bytes += more
      case "expect": expected.append(value)
      default: throw VectorFailure.syntax(file: file, line: String(line))
      }
    }
  }
}

@Suite struct DialectVectorTests {
  enum Cutting: CaseIterable {
    case whole
    case byteByByte
  }

  private func text(_ frame: DialectFrame, _ body: [UInt8]) -> String {
    let head = frame.head
    var hex = body.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    if body.count > 40, Set(body).count == 1 { hex = "\(hex.prefix(2))*\(body.count)" }
    switch head.kind {
    case .request: return "request serial=\(head.serial) type=\(head.tag) body=\(hex)"
    case .response:
      return "response serial=\(head.serial) type=\(frame.type) code=\(frame.code)"
        + " native=\(head.tag) body=\(hex)"
    case .push: return "push type=\(head.tag) body=\(hex)"
    case .cancel:
      return head.serial == 0 ? "cancel type=\(head.tag)" : "cancel serial=\(head.serial)"
    default: return "\(head.kind) serial=\(head.serial)"
    }
  }

  @Test func `the vectors are found, and their names differ`() throws {
    let names = try DialectVector.all().map(\.name)
    #expect(names.count > 50)
    #expect(Set(names).count == names.count)
  }

  @Test func `every rule of dialects has a vector`() throws {
    let expected = try DialectVector.all().flatMap(\.expected).joined(separator: "\n")
    for rule in Violation.Rule.ofDialects.map(\.rawValue).sorted() {
      #expect(expected.contains(rule))
    }
  }

  @Test(arguments: try DialectVector.all(), Cutting.allCases)
  func `a decoder makes of the bytes what the vector says`(
    vector: DialectVector, cutting: Cutting
  ) throws {
    var side = try DialectSide(DialectVector.dialect(vector.dialect), vector.sender.peer)
    switch cutting {
    case .whole: side.read(vector.bytes)
    case .byteByByte: for byte in vector.bytes { side.read([byte]) }
    }
    var found = side.frames.map { text($0.frame, $0.body) }
    if let violation = side.violation { found.append("violation \(violation.rule.rawValue)") }
    let damages = side.damages.map { "damaged \($0.rule.rawValue)" }
    if found.isEmpty, damages.isEmpty { found = ["nothing"] }
    #expect(found == vector.expected.filter { !$0.hasPrefix("damaged") })
    #expect(damages == vector.expected.filter { $0.hasPrefix("damaged") })
  }

  @Test(arguments: try DialectVector.all().filter(\.isWritten))
  func `a frame is written as the vector has it`(vector: DialectVector) throws {
    let dialect = try DialectVector.dialect(vector.dialect)
    var reader = try DialectSide(dialect, vector.sender.peer)
    reader.read(vector.bytes)
    let writer = try DialectSide(dialect, vector.sender)
    let written = reader.frames.flatMap { frame, body -> [UInt8] in
      let type =
        frame.head.kind == .cancel
        ? MessageType(rawValue: frame.head.tag) : reader.codec.requestType(of: frame)
      let isCancel = frame.head.kind == .cancel
      return writer.bytes(frame.head, about: type ?? 0, isCancel ? [] : body) ?? []
    }
    #expect(written == vector.bytes)
  }

  @Test func `the shipped dialects are those of the files`() throws {
    #expect(try DialectVector.dialect("guarded") == .guarded())
    #expect(try DialectVector.dialect("bare") == .bare)
  }
}
