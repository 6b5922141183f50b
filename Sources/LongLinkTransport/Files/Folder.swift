// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// An open folder, which closes itself. All calls block.
///
/// A name is that of an entry of this folder, and is looked up in the open folder: a change of the
/// path above it has no effect. No link is followed, and no existing file is taken for a new one.
package final class Folder: Sendable {
  /// The permissions of new files: for their owner alone.
  private static let fileMode: mode_t = 0o600
  /// The permissions of new folders.
  private static let folderMode: mode_t = 0o700

  private let descriptor: CInt
  /// The path below the directory that a server keeps; empty for that directory itself.
  private let path: String
  private let probe: FileProbe?

  private init(_ descriptor: CInt, at path: String, _ probe: FileProbe?) {
    self.descriptor = descriptor
    self.path = path
    self.probe = probe
  }

  deinit {
    FileCall.close(descriptor)
  }

  /// Opens the directory that a server keeps, and creates it if it is missing. Its path may contain
  /// links.
  package static func open(_ path: String, probe: FileProbe? = nil) throws(FileError) -> Folder {
    do throws(FileError) {
      try FileCall.retrying("make the directory", path) { unsafe mkdir(path, folderMode) }
    } catch {
      if error.errno != EEXIST { throw error }
    }
    let descriptor = try FileCall.retrying("open the directory", path) {
      openFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    return Folder(descriptor, at: "", probe)
  }

  private func path(of name: String) -> String { path.isEmpty ? name : "\(path)/\(name)" }

  private func change(_ action: FileStep.Action, _ name: String) throws(FileError) {
    try probe?(FileStep(action: action, path: path(of: name)))
  }

  // MARK: Entries

  /// Opens a folder in this folder.
  package func folder(_ name: String) throws(FileError) -> Folder {
    let path = path(of: name)
    let descriptor = try FileCall.retrying("open the folder", path) {
      unsafe openat(self.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    }
    return Folder(descriptor, at: path, probe)
  }

  /// Creates a folder, which must not exist, and opens it.
  package func makeFolder(_ name: String) throws(FileError) -> Folder {
    try change(.makeFolder, name)
    try FileCall.retrying("make the folder", path(of: name)) {
      unsafe mkdirat(descriptor, name, Self.folderMode)
    }
    return try folder(name)
  }

  /// Opens a folder, and creates it if it is missing.
  package func folderOrNew(_ name: String) throws(FileError) -> Folder {
    do throws(FileError) {
      return try makeFolder(name)
    } catch {
      guard error.errno == EEXIST else { throw error }
      return try folder(name)
    }
  }

  /// Creates a file, which must not exist.
  package func makeFile(_ name: String) throws(FileError) -> OpenFile {
    try change(.createFile, name)
    let path = path(of: name)
    let descriptor = try FileCall.retrying("make the file", path) {
      unsafe openat(
        self.descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, Self.fileMode)
    }
    return OpenFile(descriptor, at: path, probe)
  }

  /// Opens a regular file to read and write.
  package func file(_ name: String) throws(FileError) -> OpenFile {
    let path = path(of: name)
    // Does not wait, in case the file was replaced by a pipe.
    let descriptor = try FileCall.retrying("open the file", path) {
      unsafe openat(self.descriptor, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    }
    let file = OpenFile(descriptor, at: path, probe)
    // Throws unless it is a regular file.
    _ = try file.identity
    return file
  }

  /// Returns the bytes of a regular file; throws if it has more than `limit`.
  package func contents(of name: String, limit: Int) throws(FileError) -> [UInt8] {
    let file = try file(name)
    let size = try file.identity.size
    guard size <= UInt64(limit) else { throw FileError("read", path(of: name), errno: EFBIG) }
    var bytes = [UInt8](repeating: 0, count: Int(size))
    let count = try file.read(into: &bytes, at: 0)
    return count == bytes.count ? bytes : Array(bytes.prefix(count))
  }

  /// Creates a file with these bytes. When this returns, the bytes are durable, but the name may
  /// not be.
  package func write(_ bytes: [UInt8], to name: String) throws(FileError) {
    let file = try makeFile(name)
    if let error = file.write(bytes[...], at: 0).error { throw error }
    try file.sync()
  }

  /// The kind of an entry.
  package enum Kind: Equatable {
    case file(size: UInt64)
    case folder
    /// The entry is a link, a pipe, a socket or a device.
    case other
  }

  /// The kind of the entry with this name; nil if there is no such entry.
  package func kind(of name: String) throws(FileError) -> Kind? {
    var status = stat()
    do throws(FileError) {
      try FileCall.retrying("look at", path(of: name)) {
        unsafe fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW)
      }
    } catch {
      if error.isMissing { return nil }
      throw error
    }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: .file(size: UInt64(status.st_size))
    case S_IFDIR: .folder
    default: .other
    }
  }

  /// The names of at most `most` entries, sorted.
  package func names(atMost most: Int = .max) throws(FileError) -> [String] {
    // A descriptor of its own, because listing changes a descriptor's position.
    let own = try FileCall.retrying("list", path) {
      unsafe openat(self.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    guard let list = unsafe fdopendir(own) else {
      let code = errno
      FileCall.close(own)
      throw FileError("list", path, errno: code)
    }
    defer { unsafe closedir(list) }
    var names: [String] = []
    while names.count < most, let entry = unsafe readdir(list) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  // MARK: Changes

  /// Removes a file or a link; does nothing if there is none.
  package func removeFile(_ name: String) throws(FileError) {
    try remove(name, flags: 0)
  }

  private func remove(_ name: String, flags: CInt) throws(FileError) {
    try change(.remove, name)
    do throws(FileError) {
      try FileCall.retrying("remove", path(of: name)) {
        unsafe unlinkat(descriptor, name, flags)
      }
    } catch {
      if !error.isMissing { throw error }
    }
  }

  /// Removes a folder with its content, down to two further levels; does nothing if there is none.
  /// Links are removed and not followed. The removal of the file `first` is durable before anything
  /// else is removed. Returns false if the folder holds more than `most` files: then only `most`
  /// files are removed.
  package func removeFolder(
    _ name: String, first: String? = nil, atMost most: Int = .max
  ) throws(FileError) -> Bool {
    var left = most
    return try removeFolder(name, first: first, levels: 2, &left)
  }

  private func removeFolder(
    _ name: String, first: String? = nil, levels: Int, _ left: inout Int
  ) throws(FileError) -> Bool {
    let inner: Folder
    do throws(FileError) {
      inner = try folder(name)
    } catch {
      if error.isMissing { return true }
      throw error
    }
    if let first, try inner.kind(of: first) != nil {
      try inner.removeFile(first)
      try inner.sync()
    }
    let limit = max(left, 1)
    let entries = try inner.names(atMost: limit)
    for entry in entries {
      if levels > 0, try inner.kind(of: entry) == .folder {
        guard try inner.removeFolder(entry, levels: levels - 1, &left) else { return false }
      } else {
        guard left > 0 else { return false }
        try inner.removeFile(entry)
        left -= 1
      }
    }
    if entries.count == limit, try !inner.names(atMost: 1).isEmpty { return false }
    try remove(name, flags: CInt(AT_REMOVEDIR))
    return true
  }

  /// Moves an entry into a folder of the same file system, and replaces the entry with the new
  /// name. A folder can replace only an empty folder.
  package func rename(_ name: String, to other: Folder, as newName: String) throws(FileError) {
    try change(.rename(to: other.path(of: newName)), name)
    try FileCall.retrying("move", path(of: name)) {
      unsafe renameat(descriptor, name, other.descriptor, newName)
    }
  }

  /// Returns when the names in the folder are durable.
  package func sync() throws(FileError) {
    try probe?(FileStep(action: .syncFolder, path: path))
    try FileCall.retrying("flush", path.isEmpty ? "the directory" : path) {
      fsync(descriptor)
    }
  }

  /// Unlocks the folder for other processes.
  package func unlock() {
    FileCall.unlock(descriptor)
  }

  /// Locks the folder against other processes until this object is released; returns false if
  /// another process has locked it.
  package func lock() throws(FileError) -> Bool {
    try FileCall.lock(descriptor, path)
  }
}

/// `open` without a mode. Within `Folder`, a member's name hides the function.
private func openFile(_ path: String, _ flags: CInt) -> CInt {
  unsafe open(path, flags)
}
