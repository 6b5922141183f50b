// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

/// An error of the system for a file or a folder.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What failed, such as "write".
  package let operation: String
  /// The path; of a file that a server keeps, the part of it below its directory.
  package let path: String
  /// The system's error number.
  package let errno: CInt

  package init(_ operation: String, _ path: String, errno: CInt) {
    self.operation = operation
    self.path = path
    self.errno = errno
  }

  /// Whether the disk, or the share of it that this user has, is full.
  package var isNoSpace: Bool { errno == ENOSPC || errno == EDQUOT || errno == EFBIG }
  /// Whether no file or folder has this path.
  package var isMissing: Bool { errno == ENOENT }
  /// Whether users other than the owner may use a file that has to be private.
  package var isUnprotected: Bool { operation == FileError.protect }
  /// The operation of an error for a file that others may use.
  static let protect = "protect"
  /// Whether there is a directory in place of a file.
  package var isDirectory: Bool { errno == EISDIR }
  /// Whether there is a FIFO, a socket or a device in place of a file.
  package var isNotRegular: Bool { errno == FileError.notRegular }

  /// The error number for a path that is not a regular file. Opening a socket fails with it, too.
  static var notRegular: CInt { ENXIO }

  /// The error number for a file whose content was damaged after it had been written.
  package static var damaged: CInt { EIO }

  /// The error number of a file that is larger than the reader allows.
  package static var tooLarge: CInt { EFBIG }

  /// The error number of a file or folder that another process uses.
  package static var inUse: CInt { EBUSY }

  /// The operation, and the system's text and name for the error.
  package var reason: String { "\(operation): \(SocketError.text(of: errno))" }

  /// The operation, the path, and the system's text and name for the error.
  package var description: String {
    "\(operation) \(path): \(SocketError.text(of: errno))"
  }
}

/// What is about to be done to a file or a folder; tests let some of it fail.
package struct FileStep: Equatable, Sendable {
  /// A change of a file or folder, or a call that makes changes durable.
  package enum Action: Equatable, Sendable {
    case makeFolder
    case createFile
    case write(offset: UInt64, count: Int)
    case truncate(to: UInt64)
    case sync
    case syncFolder
    case rename(to: String)
    case remove
  }

  /// What is about to be done.
  package let action: Action
  /// The path, as an error would have it.
  package let path: String

  package init(action: Action, path: String) {
    self.action = action
    self.path = path
  }
}

/// Called before each step. If it throws, the step fails with that error.
package typealias FileProbe = @Sendable (FileStep) throws(FileError) -> Void

/// The functions of the C library that all handles of files and folders use.
package enum FileCall {
  /// Repeats a call while a signal interrupts it, and throws if it fails.
  @discardableResult
  package static func retrying<I: FixedWidthInteger & SignedInteger>(
    _ operation: String, _ path: String, _ call: () -> I
  ) throws(FileError) -> I {
    while true {
      let result = call()
      if result >= 0 { return result }
      let code = errno
      if code != EINTR { throw FileError(operation, path, errno: code) }
    }
  }

  /// Locks a file or a folder against other processes and handles; false if one has locked it.
  package static func lock(_ descriptor: CInt, _ path: String) throws(FileError) -> Bool {
    do throws(FileError) {
      try retrying("lock", path) { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.errno == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// Ends a lock.
  package static func unlock(_ descriptor: CInt) { _ = flock(descriptor, LOCK_UN) }

  /// Returns when the names in the folder of a path are durable. Some file systems cannot flush a
  /// folder, and keep its names all the same.
  package static func syncFolder(of path: String) {
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let descriptor = unsafe open(folder, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = fsync(descriptor)
    close(descriptor)
  }

  /// Closes a descriptor, which must not be repeated after an error.
  package static func close(_ descriptor: CInt) { SystemCall.close(descriptor) }

  /// Waits until the bytes of a file are durable, and its size with them.
  static func sync(_ descriptor: CInt) -> CInt {
    #if canImport(Darwin)
    // fsync(2) leaves the bytes in the cache of the disk.
    let result = fcntl(descriptor, F_FULLFSYNC)
    return result == 0 ? 0 : fsync(descriptor)
    #else
    return fdatasync(descriptor)
    #endif
  }
}
