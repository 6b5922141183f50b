// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkCore

/// Prints decoded items, as text or as JSON.
struct DecodePrinter {
  let stream: String?
  let sender: Role
  let asJSON: Bool
  let isVerbose: Bool

  /// The maximum number of body bytes on a line.
  private static let preview = 24

  func begin() throws {
    guard !asJSON else { return }
    let whose = "from the \(sender == .client ? "client" : "server")"
    try Output.line("# \(stream.map { "\($0), " } ?? "")\(whose)")
  }

  func print(_ item: DecodedItem) throws {
    if asJSON {
      try json(item)
    } else {
      try text(item)
    }
  }

  /// Reports bytes that were sent but are missing from the dump.
  func gap(at offset: Int) throws {
    let text = "bytes are missing from the capture"
    if asJSON {
      try Output.json(
        Record(stream: stream, sender: sender, offset: offset, length: 0, error: text))
    } else {
      try Output.line("\(place(offset))  error: \(text)")
    }
  }

  // MARK: - Text

  private func place(_ offset: Int) -> String {
    let digits = String(offset, radix: 16)
    return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
  }

  private func text(_ item: DecodedItem) throws {
    let line: String
    var frame: DecodedFrame?
    switch item.content {
    case .frame(let decoded):
      frame = decoded
      line = decoded.summary + contents(decoded)
    case .damage(let reason, let decoded):
      frame = decoded
      line = "error: \(reason)" + (decoded.map { " in \($0.summary)" } ?? "")
    case .skipped:
      line = "error: \(item.length) bytes after it belong to no frame"
    case .unfinished(let wanted):
      line = "error: the stream ends within a frame, with \(item.length) of \(wanted) bytes"
    case .begun(let wanted):
      line = "the recording ends within a frame, with \(item.length) of \(wanted) bytes"
    }
    try Output.line("\(place(item.offset))  \(line)")
    guard isVerbose, let frame else { return }
    for field in frame.fields { try Output.line("          \(field.name): \(field.value)") }
    try dump(frame.metadata ?? [], "metadata")
    try dump(frame.body, "body")
  }

  private func dump(_ bytes: [UInt8], _ name: String) throws {
    guard !bytes.isEmpty else { return }
    try Output.line("          \(name):")
    for start in stride(from: 0, to: bytes.count, by: 16) {
      let row = bytes[start..<min(start + 16, bytes.count)]
      try Output.line("          \(place(start))  \(DecodePrinter.row(row))")
    }
  }

  /// The sizes of a frame's metadata and payload, and a preview of the payload.
  private func contents(_ frame: DecodedFrame) -> String {
    let metadata = frame.metadata.map { " metadata=\($0.count)" } ?? ""
    let size = frame.body.count + frame.leftOut
    guard size > 0 else { return metadata }
    let shown = frame.body.prefix(isVerbose ? 0 : DecodePrinter.preview)
    var text = "\(metadata) body=\(size)"
    if !shown.isEmpty {
      text += " " + Array(shown).hex + (shown.count < frame.body.count ? "…" : "")
    }
    if frame.leftOut == size { return text + " (left out)" }
    return frame.leftOut > 0 ? text + " (\(frame.leftOut) left out)" : text
  }

  private static func row(_ bytes: ArraySlice<UInt8>) -> String {
    let digits = bytes.map { [$0].hex }.joined(separator: " ")
    let text = bytes.map { byte in
      (0x20...0x7E).contains(byte) ? String(UnicodeScalar(byte)) : "."
    }.joined()
    return digits + String(repeating: " ", count: 47 - digits.count) + "  " + text
  }

  // MARK: - JSON

  /// The object that `--json` prints; every key is always present.
  private struct Record: Encodable {
    enum CodingKeys: String, CodingKey {
      case stream, from, offset, length, kind, type, serial, code, refused, fragment, more
      case metadata, body, error
    }

    var stream: String?
    var sender: Role
    var offset: Int
    var length: Int
    var frame: DecodedFrame?
    var error: String?

    func encode(to encoder: any Encoder) throws {
      var record = encoder.container(keyedBy: CodingKeys.self)
      try record.encode(stream, forKey: .stream)
      try record.encode(sender == .client ? "client" : "server", forKey: .from)
      try record.encode(offset, forKey: .offset)
      try record.encode(length, forKey: .length)
      try record.encode(frame?.kind, forKey: .kind)
      try record.encode(frame?.type, forKey: .type)
      try record.encode(frame?.serial, forKey: .serial)
      try record.encode(frame?.code, forKey: .code)
      try record.encode(frame?.isRefused ?? false, forKey: .refused)
      try record.encode(frame?.fragment, forKey: .fragment)
      try record.encode(frame?.hasMore ?? false, forKey: .more)
      try record.encode(
        frame?.metadata.map { Data($0).base64EncodedString() }, forKey: .metadata)
      try record.encode(
        frame.flatMap { $0.leftOut > 0 ? nil : Data($0.body).base64EncodedString() },
        forKey: .body)
      try record.encode(error, forKey: .error)
    }
  }

  private func json(_ item: DecodedItem) throws {
    var record = Record(stream: stream, sender: sender, offset: item.offset, length: item.length)
    switch item.content {
    case .frame(let frame): record.frame = frame
    case .damage(let reason, let frame):
      record.frame = frame
      record.error = reason
    case .skipped: record.error = "skipped"
    case .unfinished: record.error = "\(Violation.Rule.truncatedFrame)"
    case .begun: break
    }
    try Output.json(record)
  }
}
