// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// The identity of a file and its content: it differs once the file is replaced or written.
package struct FileIdentity: Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64
  package let size: UInt64
  /// The time of the last change of its content, in nanoseconds since 1970.
  package let modified: Int64

  package init(device: UInt64, inode: UInt64, size: UInt64, modified: Int64) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
  }

  /// Reads the identity of the file at a path. Throws for anything but a regular file. It blocks.
  package init(at path: String) throws(FileError) {
    var status = stat()
    try FileCall.retrying("stat", path) { unsafe stat(path, &status) }
    try self.init(status, path)
  }

  init(_ status: borrowing stat, _ path: String) throws(FileError) {
    guard status.st_mode & S_IFMT == S_IFREG else {
      let isDirectory = status.st_mode & S_IFMT == S_IFDIR
      throw FileError("open", path, errno: isDirectory ? EISDIR : FileError.notRegular)
    }
    #if canImport(Darwin)
    let time = status.st_mtimespec
    #else
    let time = status.st_mtim
    #endif
    self.init(
      device: UInt64(truncatingIfNeeded: status.st_dev),
      inode: UInt64(truncatingIfNeeded: status.st_ino),
      size: UInt64(max(0, status.st_size)),
      modified: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }
}

/// An open regular file, which closes itself. Its methods block: call them off the loop.
package final class OpenFile: Sendable {
  private let descriptor: CInt
  /// The path, as errors and the probe have it.
  package let path: String
  private let probe: FileProbe?

  /// Takes over a descriptor.
  package init(_ descriptor: CInt, at path: String, _ probe: FileProbe? = nil) {
    self.descriptor = descriptor
    self.path = path
    self.probe = probe
  }

  /// Opens a regular file to read; throws for anything else. A FIFO does not make it wait.
  package static func read(_ path: String) throws(FileError) -> OpenFile {
    let descriptor = try FileCall.retrying("open", path) {
      // Without O_NONBLOCK, opening a FIFO would wait for a writer.
      unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    }
    let file = OpenFile(descriptor, at: path)
    _ = try file.identity
    return file
  }

  /// Opens a regular file to read and to write, or creates it; throws for anything else. It follows
  /// no link.
  package static func update(_ path: String) throws(FileError) -> OpenFile {
    let descriptor = try FileCall.retrying("open", path) {
      unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o666)
    }
    let file = OpenFile(descriptor, at: path)
    _ = try file.identity
    return file
  }

  deinit { SystemCall.close(descriptor) }

  /// Locks the file against other handles; returns false if another handle has locked it.
  package func lock() throws(FileError) -> Bool {
    try FileCall.lock(descriptor, path)
  }

  /// Releases the lock, even while this handle lives on.
  package func unlock() { FileCall.unlock(descriptor) }

  /// The file's identity now; throws unless it is a regular file.
  package var identity: FileIdentity {
    get throws(FileError) {
      var status = stat()
      try FileCall.retrying("fstat", path) { unsafe fstat(descriptor, &status) }
      return try FileIdentity(status, path)
    }
  }

  /// Whether the file belongs to this user, and no other user may read or write it.
  package var isPrivate: Bool {
    get throws(FileError) {
      var status = stat()
      try FileCall.retrying("fstat", path) { unsafe fstat(descriptor, &status) }
      return status.st_mode & 0o077 == 0 && status.st_uid == geteuid()
    }
  }

  // MARK: Reading

  /// Reads at most `count` bytes at an offset; fewer only at the file's end.
  package func read(_ count: Int, at offset: UInt64) throws(FileError) -> [UInt8] {
    var failure: FileError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      unsafe (filled, failure) = fill(UnsafeMutableRawBufferPointer(buffer), at: offset)
    }
    if let failure { throw failure }
    return bytes
  }

  /// Reads into the whole buffer, or up to the end of the file; returns the number of bytes.
  package func read(into buffer: inout [UInt8], at offset: UInt64) throws(FileError) -> Int {
    let (count, failure) = unsafe buffer.withUnsafeMutableBytes { unsafe fill($0, at: offset) }
    if let failure { throw failure }
    return count
  }

  private func fill(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) -> (count: Int, failure: FileError?) {
    var filled = 0
    do throws(FileError) {
      while filled < buffer.count {
        let free = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        let count = try FileCall.retrying("read", path) {
          unsafe pread(descriptor, free.baseAddress, free.count, off_t(offset) + off_t(filled))
        }
        if count == 0 { break }
        filled += count
      }
      return (filled, nil)
    } catch {
      return (filled, error)
    }
  }

  // MARK: Writing

  /// Writes all of the bytes at an offset, and returns how many were written before an error.
  package func write(
    _ bytes: ArraySlice<UInt8>, at offset: UInt64
  ) -> (written: Int, error: FileError?) {
    var done = 0
    do throws(FileError) {
      try probe?(FileStep(action: .write(offset: offset, count: bytes.count), path: path))
      while done < bytes.count {
        let count = try FileCall.retrying("write", path) {
          unsafe bytes.withUnsafeBytes { bytes in
            unsafe pwrite(
              descriptor, bytes.baseAddress! + done, bytes.count - done,
              off_t(offset) + off_t(done))
          }
        }
        // A disk that is full may take a part of the bytes, and none of the next ones.
        guard count > 0 else { throw FileError("write", path, errno: ENOSPC) }
        done += count
      }
      return (done, nil)
    } catch {
      return (done, error)
    }
  }

  /// Sets the size of the file: drops the bytes beyond it, or appends zeros.
  package func truncate(to size: UInt64) throws(FileError) {
    try probe?(FileStep(action: .truncate(to: size), path: path))
    try FileCall.retrying("truncate", path) { ftruncate(descriptor, off_t(size)) }
  }

  /// Returns when the bytes of the file, and its size, are durable.
  package func sync() throws(FileError) {
    try probe?(FileStep(action: .sync, path: path))
    try FileCall.retrying("flush", path) { FileCall.sync(descriptor) }
  }
}
