// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkTransport

/// The directory of recordings, and how many it has. Its functions block.
///
/// Files with other names are left alone, and no link in the directory is followed. Several
/// processes can share a directory: one at a time writes.
struct RecordingDirectory: Sendable {
  /// A recording that was written.
  struct Entry: Sendable {
    let name: String
    let bytes: Int
  }

  /// The name of a file that is not complete. A process that ends before leaves it to the next
  /// one, which removes it.
  private static let draft = ".longlink-recording.part"

  let path: String
  /// The most files, at least one, and the most bytes of all files together.
  let mostFiles: Int
  let mostBytes: Int

  /// Makes the directory if there is none. Throws if it cannot be used.
  func make() throws(FileError) { _ = try Folder.open(path) }

  /// Writes a file with the pieces that `next` returns until nil. To make room, the files that go
  /// first are removed once the new one is durable.
  ///
  /// Throws `inUse` if another process is writing, and `tooLarge` for more than `mostBytes`.
  func write(_ cause: String, _ next: () -> [UInt8]?) throws(FileError) -> Entry {
    let folder = try Folder.open(path)
    guard try folder.lock() else { throw FileError("lock", path, errno: FileError.inUse) }
    try folder.removeFile(Self.draft)
    do throws(FileError) {
      let bytes = try writeDraft(in: folder, next)
      try makeRoom(for: bytes, in: folder)
      var time = RecordingName.now
      var name = RecordingName(cause, at: time)
      // The clock may have been set back.
      while try folder.kind(of: name.text) != nil {
        time += 1
        name = RecordingName(cause, at: time)
      }
      try folder.rename(Self.draft, to: folder, as: name.text)
      // Some file systems cannot flush a folder, and keep its names all the same.
      try? folder.sync()
      return Entry(name: name.text, bytes: bytes)
    } catch {
      try? folder.removeFile(Self.draft)
      throw error
    }
  }

  private func writeDraft(
    in folder: Folder, _ next: () -> [UInt8]?
  ) throws(FileError) -> Int {
    let file = try folder.makeFile(Self.draft)
    var bytes = 0
    while let piece = next() {
      guard bytes + piece.count <= mostBytes else {
        throw FileError("write", Self.draft, errno: FileError.tooLarge)
      }
      if let error = file.write(piece[...], at: UInt64(bytes)).error { throw error }
      bytes += piece.count
    }
    try file.sync()
    return bytes
  }

  private func makeRoom(for bytes: Int, in folder: Folder) throws(FileError) {
    var files: [(name: RecordingName, size: Int)] = []
    for text in try folder.names() {
      if let name = RecordingName(text), case .file(let size) = try folder.kind(of: text) {
        files.append((name, Int(clamping: size)))
      }
    }
    files.sort { $0.name < $1.name }
    var total = files.reduce(bytes) { $0 + $1.size }
    for (index, file) in files.enumerated() {
      guard files.count - index >= mostFiles || total > mostBytes else { break }
      try folder.removeFile(file.name.text)
      total -= file.size
    }
  }
}
#endif
