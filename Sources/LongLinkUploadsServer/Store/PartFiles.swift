// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// The files of an upload's parts while it is unfinished. Only one thread at a time may use them.
struct PartFiles {
  /// The name of the folder that becomes the finished upload.
  static let filesName = "files"
  /// The name of the folder with the values of fields, in numbered files.
  static let fieldsName = "fields"

  let layout: PartLayout
  let files: Folder
  let fields: Folder
  /// The file that was used last.
  private var open: (index: Int, file: OpenFile)?
  /// Whether `open` has bytes that may not be durable.
  private var isDirty = false
  /// Closed files with bytes that may not be durable, at most `mostDirty`. Flushing them one after
  /// the other costs little more than flushing one, because a file system writes what they have in
  /// common once.
  private var dirty: [OpenFile] = []
  private static let mostDirty = 8
  /// The most files that are looked at, created or removed in one turn, so that other clients get
  /// their turns on the threads.
  static let mostAtOnce = 32
  /// The error of a flush, after which bytes may never be durable: a system reports it only once.
  private var broken: FileError?
  /// Whether the folders have new names that may not be durable.
  private var hasNewFiles = false
  private var hasNewFields = false

  /// Opens the folders of an upload.
  init(_ layout: PartLayout, in folder: Folder) throws(FileError) {
    self.layout = layout
    files = try folder.folder(Self.filesName)
    fields = try folder.folder(Self.fieldsName)
  }

  private func folder(of index: Int) -> Folder {
    layout.entries[index].isFile ? files : fields
  }

  // MARK: Writing

  /// Writes bytes at an offset of the upload; all bytes before it must be there. Returns how many
  /// were written before an error, or before files were flushed, which ends the turn. Bytes after
  /// the last part are not written.
  mutating func write(
    _ bytes: ArraySlice<UInt8>, at offset: UInt64
  ) -> (written: Int, error: FileError?) {
    var rest = bytes
    var offset = offset
    while !rest.isEmpty, let index = layout.index(at: offset) {
      let entry = layout.entries[index]
      let room = entry.end - offset
      let piece = UInt64(rest.count) <= room ? rest : rest.prefix(Int(room))
      do throws(FileError) {
        guard let file = try fileToWrite(index, isNew: offset == entry.start) else { break }
        isDirty = true
        let (written, error) = file.write(piece, at: offset - entry.start)
        rest = rest.dropFirst(written)
        offset += UInt64(written)
        if let error { throw error }
      } catch {
        return (bytes.count - rest.count, error)
      }
    }
    return (bytes.count - rest.count, nil)
  }

  /// Returns the file of a part; nil if files were flushed instead: then ask again in the next
  /// turn.
  private mutating func fileToWrite(_ index: Int, isNew: Bool) throws(FileError) -> OpenFile? {
    if let open, open.index == index { return open.file }
    if try closeLast() { return nil }
    let name = layout.entries[index].name
    let file: OpenFile
    if isNew {
      file = try folder(of: index).makeFile(name)
      if layout.entries[index].isFile { hasNewFiles = true } else { hasNewFields = true }
    } else {
      file = try folder(of: index).file(name)
    }
    open = (index, file)
    return file
  }

  /// Closes the file that was used last; returns whether files were flushed.
  private mutating func closeLast() throws(FileError) -> Bool {
    if isDirty, let open { dirty.append(open.file) }
    isDirty = false
    open = nil
    guard dirty.count >= Self.mostDirty else { return false }
    try flush()
    return true
  }

  private mutating func flush() throws(FileError) {
    if let broken { throw broken }
    do throws(FileError) {
      for file in dirty { try file.sync() }
      dirty = []
    } catch {
      broken = error
      throw error
    }
  }

  /// Returns when all written bytes are durable.
  mutating func sync() throws(FileError) {
    if isDirty, let open { dirty.append(open.file) }
    isDirty = false
    try flush()
    if hasNewFiles { try files.sync() }
    hasNewFiles = false
    if hasNewFields { try fields.sync() }
    hasNewFields = false
  }

  /// Removes the bytes after an offset from at most `mostAtOnce` files, beginning with part `next`.
  /// Returns the part to continue with; nil if all files are done.
  mutating func cut(to offset: UInt64, from next: Int) throws(FileError) -> Int? {
    open = nil
    isDirty = false
    dirty = []
    guard let first = layout.index(at: offset) else { return nil }
    let start = max(first, next)
    let end = min(start + Self.mostAtOnce, layout.entries.count)
    for index in start..<end {
      let entry = layout.entries[index]
      let folder = folder(of: index)
      guard let kind = try folder.kind(of: entry.name) else { continue }
      if entry.start >= offset {
        try folder.removeFile(entry.name)
      } else if kind != .file(size: offset - entry.start) {
        try folder.file(entry.name).truncate(to: offset - entry.start)
      }
    }
    return end < layout.entries.count ? end : nil
  }

  // MARK: Reading

  /// The number of bytes that are there, from the beginning up to the first gap.
  func available() throws(FileError) -> UInt64 {
    for (index, entry) in layout.entries.enumerated() where entry.size != 0 {
      guard case .file(let size)? = try folder(of: index).kind(of: entry.name) else {
        return entry.start
      }
      if size < entry.size ?? .max { return entry.start + size }
    }
    return layout.size ?? 0
  }

  /// Reads bytes of one part from an offset on: as many as fit into the buffer, exist, and are
  /// before `end`.
  mutating func read(
    into buffer: inout [UInt8], at offset: UInt64, end: UInt64
  ) throws(FileError) -> Int {
    guard let index = layout.index(at: offset) else { return 0 }
    let entry = layout.entries[index]
    if open?.index != index {
      open = (index, try folder(of: index).file(entry.name))
    }
    guard let file = open?.file else { return 0 }
    let count = try file.read(into: &buffer, at: offset - entry.start)
    return Int(min(UInt64(count), min(end, entry.end) - offset))
  }

  /// Continues to complete the files: creates those of empty parts, checks the sizes of all, and
  /// collects the fields. Returns false once all are complete, and the names and `fields.json` are
  /// durable.
  func complete(_ completion: inout Completion, at end: UInt64) throws(UploadFailure) -> Bool {
    let first = completion.next
    for index in first..<min(first + Self.mostAtOnce, layout.entries.count) {
      let entry = layout.entries[index]
      let size = entry.size ?? (end - entry.start)
      let folder = folder(of: index)
      let kind = try filing { () throws(FileError) in try folder.kind(of: entry.name) }
      if kind == nil, size == 0 {
        if entry.isFile {
          _ = try filing { () throws(FileError) in try folder.makeFile(entry.name) }
        }
      } else if kind != .file(size: size) {
        throw .damaged("the file of part \(index) is gone or has another size")
      }
      if !entry.isFile { completion.form.add(try value(of: entry, size), to: entry.field) }
      completion.next = index + 1
    }
    if completion.next < layout.entries.count { return true }
    try filing { () throws(FileError) in try write(completion.form) }
    return false
  }

  private func value(
    of entry: PartLayout.Entry, _ size: UInt64
  ) throws(UploadFailure) -> [UInt8] {
    guard size > 0 else { return [] }
    return try filing { () throws(FileError) in
      try fields.contents(of: entry.name, limit: UploadLimits.mostFieldBytes)
    }
  }

  private func write(_ form: FormFields) throws(FileError) {
    let (bytes, name) = (form.encoded(), PartLayout.fieldsName)
    // Written in the folder of fields, where no file of the client's can have the name, then moved
    // in one step. It replaces the file of an earlier attempt: the name is reserved, in any form
    // that a file system may take for the same.
    try fields.removeFile(name)
    try fields.write(bytes, to: name)
    try fields.rename(name, to: files, as: name)
    try files.sync()
  }

  /// The progress of `complete`.
  struct Completion {
    /// The index of the next part to complete.
    fileprivate var next = 0
    /// The fields of the parts before `next`.
    fileprivate var form = FormFields()

    var hasBegun: Bool { next > 0 }
  }
}
