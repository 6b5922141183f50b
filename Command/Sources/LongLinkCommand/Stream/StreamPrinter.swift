// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCommandSupport

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

  /// Reports that a stream goes on which was cut off, or whose client has moved if there is no
  /// error.
  static func report(returnAfter error: LongLinkError?, attempts: Int, items: Int) {
    let cause = error.map { "attempt \(attempts) after \(CallPrinter.describe($0))" }
    let text = cause ?? "the client has moved to another connection"
    Output.error("the stream goes on after item \(items): \(text)")
  }

  private func show(_ bytes: [UInt8], numbered number: Int?) throws {
    switch format {
    case .raw: try Output.write(bytes)
    case .text: try Output.line(ofPeer: bytes)
    case .json:
      try Output.json(
        Record(
          number: number, milliseconds: elapsed.milliseconds,
          body: Data(bytes).base64EncodedString()))
    }
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
