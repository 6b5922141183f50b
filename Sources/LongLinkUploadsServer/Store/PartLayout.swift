// SPDX-License-Identifier: Apache-2.0

internal import LongLinkUploadMessages

/// Where the bytes of an upload go: its parts, one after the other.
struct PartLayout: Sendable {
  struct Entry: Sendable {
    /// The offset of the part's first byte in the upload.
    let start: UInt64
    /// How many bytes the part has; nil if it ends with the upload.
    let size: UInt64?
    /// Whether the part is a file, and not the value of a field.
    let isFile: Bool
    /// The field of the form.
    let field: String
    /// The name of the file that has the part's bytes; a number for a field.
    let name: String

    /// The offset after the part's last byte.
    var end: UInt64 { size.map { start + $0 } ?? .max }
  }

  /// The file with the fields of a finished upload.
  static let fieldsName = "fields.json"

  let entries: [Entry]

  /// The parts as a request names them; their sizes were checked.
  init(_ parts: [Part]) {
    var names = SafeNames(reserved: [Self.fieldsName])
    var start: UInt64 = 0
    var entries: [Entry] = []
    entries.reserveCapacity(parts.count)
    for (index, part) in parts.enumerated() {
      let isFile = !part.fileName.isEmpty
      entries.append(
        Entry(
          start: start, size: part.size, isFile: isFile, field: part.field,
          name: isFile ? names.name(for: part.fileName) : "\(index)"))
      start += part.size ?? 0
    }
    self.entries = entries
  }

  /// The number of bytes of all parts; nil if the last one's is not known.
  var size: UInt64? { entries.last?.size == nil ? nil : entries.last?.end }

  /// How many entries of the file system it takes: the parts, the folder, and the fields.
  var fileCount: Int { Self.fileCount(parts: entries.count) }

  static func fileCount(parts: Int) -> Int { parts + 2 }

  /// The names of the files, as a finish is answered; empty for fields.
  var names: [String] { entries.map { $0.isFile ? $0.name : "" } }

  /// Whether so many bytes are all.
  func isComplete(_ offset: UInt64) -> Bool {
    guard let last = entries.last else { return offset == 0 }
    return last.size == nil ? offset >= last.start : offset == last.end
  }

  /// The part that has the byte at an offset; nil after the last one. Empty parts have none.
  func index(at offset: UInt64) -> Int? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].end <= offset { low = middle + 1 } else { high = middle }
    }
    return low < entries.count ? low : nil
  }
}
