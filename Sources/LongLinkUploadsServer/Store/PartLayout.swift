// SPDX-License-Identifier: Apache-2.0

internal import LongLinkUploadMessages

/// Maps the bytes of an upload to its parts, which follow one another.
struct PartLayout: Sendable {
  struct Entry: Sendable {
    /// The offset of the part's first byte in the upload.
    let start: UInt64
    /// The number of the part's bytes; nil if the part ends with the upload.
    let size: UInt64?
    /// Whether the part is a file, and not the value of a field.
    let isFile: Bool
    /// The name of the form's field.
    let field: String
    /// The name of the part's file; a number for a field's value.
    let name: String

    /// The offset after the part's last byte; the largest number if the size is not known.
    var end: UInt64 { size.map { start + $0 } ?? .max }
  }

  /// The name of the file with the fields of a finished upload.
  static let fieldsName = "fields.json"

  let entries: [Entry]

  /// Lays out the parts of a create request, whose sizes were checked.
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

  /// The number of bytes of all parts; nil if the last part's size is not known.
  var size: UInt64? { entries.last?.size == nil ? nil : entries.last?.end }

  /// The number of entries in the file system: one for each part, the folder, and `fields.json`.
  var fileCount: Int { Self.fileCount(parts: entries.count) }

  static func fileCount(parts: Int) -> Int { parts + 2 }

  /// The names of the files as the response to a finish has them; empty for fields.
  var names: [String] { entries.map { $0.isFile ? $0.name : "" } }

  /// Whether an upload with this number of bytes is complete.
  func isComplete(_ offset: UInt64) -> Bool {
    guard let last = entries.last else { return offset == 0 }
    return last.size == nil ? offset >= last.start : offset == last.end
  }

  /// The index of the part with the byte at an offset; nil after the last part. Empty parts have no
  /// byte.
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
