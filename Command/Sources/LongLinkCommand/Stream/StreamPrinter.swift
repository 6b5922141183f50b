// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkCore

/// Prints the items of `longlink stream`.
struct StreamPrinter: Sendable {
  enum Format {
    case text
    case raw
    case json
  }

  private let format: Format
  private let start: ContinuousClock.Instant

  init(_ format: Format, since start: ContinuousClock.Instant) {
    self.format = format
    self.start = start
  }

  /// The time since the start.
  var elapsed: Duration { ContinuousClock.now - start }

  /// Prints an item.
  func show(_ item: [UInt8], number: Int) throws {
    try show(item, numbered: number)
  }

  /// Prints the body of the response, if it has one.
  func show(response body: [UInt8]) throws {
    if !body.isEmpty { try show(body, numbered: nil) }
  }

  private func show(_ bytes: [UInt8], numbered number: Int?) throws {
    switch format {
    case .raw: try Output.write(bytes)
    case .text:
      // Escapes can make six times the size of it.
      try PeerText.pieces(of: bytes) { try Output.write(Array($0.utf8)) }
      try Output.line("")
    case .json: try Output.line(try json(bytes, number))
    }
  }

  private func json(_ bytes: [UInt8], _ number: Int?) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let record = Record(
      number: number, milliseconds: elapsed.milliseconds, body: Data(bytes).base64EncodedString())
    return String(decoding: try encoder.encode(record), as: UTF8.self)
  }
}

/// The object that `--json` prints; every key is always there.
private struct Record: Encodable {
  enum CodingKeys: String, CodingKey {
    case number
    case milliseconds
    case body
  }

  let number: Int?
  let milliseconds: Double
  let body: String

  func encode(to encoder: any Encoder) throws {
    var record = encoder.container(keyedBy: CodingKeys.self)
    try record.encode(number, forKey: .number)
    try record.encode(milliseconds, forKey: .milliseconds)
    try record.encode(body, forKey: .body)
  }
}
