// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkUploadMessages

/// The record of an upload, with which a later process can go on with it, as lines of text.
struct UploadRecord: Hashable, Sendable {
  /// The largest record that is read, in bytes.
  static let limit = 4_194_304
  private static let title = "longlink upload record 1"

  var key: String
  /// The upload's ID; nil until the server has answered.
  var id: String?
  var generation: UInt64
  /// A line for each part. The line of a file differs if the file has changed.
  let parts: [String]

  /// The record as the content of a file.
  var bytes: [UInt8] {
    var lines = [
      UploadRecord.title, "key \(key)", "id \(id ?? "-")", "generation \(generation)",
    ]
    lines += parts.map { "part \($0)" } + ["end", ""]
    return Array(lines.joined(separator: "\n").utf8)
  }

  init(key: String, id: String? = nil, generation: UInt64 = 0, parts: [String]) {
    self.key = key
    self.id = id
    self.generation = generation
    self.parts = parts
  }

  /// Reads the content of a file; nil if it is no record.
  init?(_ bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
    func value(_ name: String, of line: Substring?) -> String? {
      guard let line, line.hasPrefix("\(name) ") else { return nil }
      return String(line.dropFirst(name.count + 1))
    }
    guard lines.popFirst() == UploadRecord.title[...],
      let key = value("key", of: lines.popFirst()), !key.isEmpty, key.utf8.count <= 64,
      let id = value("id", of: lines.popFirst()), !id.isEmpty,
      let generation = value("generation", of: lines.popFirst()).flatMap({ UInt64($0) }),
      lines.popLast() == "", lines.popLast() == "end"
    else { return nil }
    let parts = lines.compactMap { value("part", of: $0) }
    guard parts.count == lines.count else { return nil }
    self.init(key: key, id: id == "-" ? nil : id, generation: generation, parts: parts)
  }
}

extension PreparedUpload {
  /// The lines that describe the parts in a record.
  var recordParts: [String] {
    parts.map { part in
      let names = [part.part.field, part.part.fileName ?? "", part.part.effectiveContentType ?? ""]
      return ([part.source] + names.map { "\"\(UploadRecord.escaped($0))\"" })
        .joined(separator: " ")
    }
  }
}

extension UploadRecord {
  /// The text with percent-encoding for the characters that would end it in a record.
  fileprivate static func escaped(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "\""), 0..<0x20, 0x7F...:
        let digits = String(byte, radix: 16)
        result += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
      default: result.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    return result
  }
}

extension PreparedUpload.Part {
  /// Describes the content in a record: a file by its inode, size and times instead of its path.
  fileprivate var source: String {
    if let file {
      let identity = file.identity
      return "file \(identity.device) \(identity.inode) \(identity.size) \(identity.modified)"
        + " \(file.range.lowerBound) \(file.range.upperBound)"
    }
    if case .bytes(let bytes) = part.content.source {
      return "bytes \(bytes.count) \(SHA256Digest.hash(of: bytes).hexadecimal)"
    }
    return "sequence \(size.map { "\($0)" } ?? "-")"
  }
}
