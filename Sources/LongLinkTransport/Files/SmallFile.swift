// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// A small private file that is read and written as a whole. Its methods block: call them off the
/// loop.
package struct SmallFile: Sendable {
  private let path: String

  package init(_ path: String) {
    self.path = path
  }

  /// Reads the first `limit` bytes of the file; nil if there is no file.
  package func read(limit: Int) throws(FileError) -> [UInt8]? {
    do throws(FileError) {
      return try OpenFile.read(path).read(limit, at: 0)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Replaces the file in one step: after a crash, the file is the old or the new one, whole. Only
  /// its owner may read it.
  ///
  /// `suffix` names the draft, which is renamed when it is complete. If its name would be too long,
  /// it is shortened, and gets a hash of the whole name.
  package func replace(with bytes: [UInt8], suffix: String) throws(FileError) {
    let draft = draft(suffix)
    do throws(FileError) {
      try SmallFile.create(draft, bytes)
      try FileCall.retrying("rename", path) { unsafe rename(draft, path) }
    } catch {
      _ = unsafe unlink(draft)
      throw error
    }
    FileCall.syncFolder(of: path)
  }

  /// Reads the file, or creates it with these bytes if there is none, in one step: callers that do
  /// it at once all get the same bytes. Throws for a file that others may read or write.
  package func readOrCreate(_ bytes: [UInt8], limit: Int) throws(FileError) -> [UInt8] {
    if let found = try readPrivate(limit: limit) { return found }
    var random = SystemRandomNumberGenerator()
    let draft = draft("\(random.next() as UInt64)")
    defer { _ = unsafe unlink(draft) }
    try SmallFile.create(draft, bytes)
    do throws(FileError) {
      // Unlike rename(2), this replaces no file.
      try FileCall.retrying("create", path) { unsafe link(draft, path) }
    } catch {
      guard error.errno == EEXIST, let found = try readPrivate(limit: limit) else { throw error }
      return found
    }
    FileCall.syncFolder(of: path)
    return bytes
  }

  /// Reads the first `limit` bytes of the file; nil if there is no file. Throws for a file that
  /// others may read or write.
  package func readPrivate(limit: Int) throws(FileError) -> [UInt8]? {
    do throws(FileError) {
      let file = try OpenFile.read(path)
      guard try file.isPrivate else { throw FileError(FileError.protect, path, errno: EACCES) }
      return try file.read(limit, at: 0)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  private func draft(_ suffix: String) -> String {
    let start = path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex
    var name = path[start...]
    // A name has at most 255 bytes.
    guard name.utf8.count + suffix.utf8.count > 254 else { return "\(path).\(suffix)" }
    // FNV-1a: files whose names begin alike must not share a draft.
    let number = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01b3
    }
    let ending = "-\(String(number, radix: 16)).\(suffix)"
    while name.utf8.count + ending.utf8.count > 255 { name.removeLast() }
    return "\(path[..<start])\(name)\(ending)"
  }

  /// Removes the file, if it is there.
  package func remove() {
    _ = unsafe unlink(path)
  }

  private static func create(_ path: String, _ bytes: [UInt8]) throws(FileError) {
    let descriptor = try FileCall.retrying("create", path) {
      unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }
    let file = OpenFile(descriptor, at: path)
    if let error = file.write(bytes[...], at: 0).error { throw error }
    try file.sync()
  }
}
