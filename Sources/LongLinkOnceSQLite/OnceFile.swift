// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import Foundation
internal import GRDB
internal import LongLinkCLibrary
internal import LongLinkTransport

/// The files of a store: the database, what SQLite has beside it, and the lock.
struct OnceFile {
  /// The path without links, so that two paths of one file have one lock.
  let path: String

  init(_ path: String) {
    // It is absolute, so that SQLite takes no path for one of its special names.
    self.path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
  }

  /// Locks the file against other stores for as long as the result is held, and makes it if there
  /// is none. Throws for files that others may use.
  ///
  /// The lock is on a file of its own, and taken first: a process that opens and closes a database
  /// beside SQLite ends the locks that SQLite has on it.
  func lock() throws(SQLiteOnceError) -> OpenFile {
    let lockPath = path + ".lock"
    let lock: OpenFile
    let isFirst: Bool
    do throws(FileError) {
      _ = try SmallFile(lockPath).readOrCreate([], limit: 1)
      lock = try OpenFile.update(lockPath)
      isFirst = try lock.lock()
      if isFirst { _ = try SmallFile(path).readOrCreate([], limit: 1) }
    } catch {
      throw SQLiteOnceError(error)
    }
    guard isFirst else {
      throw SQLiteOnceError(
        .inUse, path,
        "one process at a time writes records, and locks \(lockPath). Stop the other process, or "
          + "choose another file")
    }
    try checkNames()
    return lock
  }

  /// Checks what SQLite has left beside the file, and that the file has no other name.
  private func checkNames() throws(SQLiteOnceError) {
    for path in [path + "-wal", path + "-shm"] where try !isPrivate(path) {
      throw SQLiteOnceError.notPrivate(path)
    }
    var status = stat()
    do throws(FileError) {
      try FileCall.retrying("stat", path) { unsafe stat(path, &status) }
    } catch {
      throw SQLiteOnceError(error)
    }
    guard status.st_nlink > 1 else { return }
    throw SQLiteOnceError(
      .notPrivate, path,
      "it has several names (hard links), which SQLite takes for several files. Copy it to a path "
        + "of its own")
  }

  /// Whether nobody else may use what is at the path; also if nothing is there.
  private func isPrivate(_ path: String) throws(SQLiteOnceError) -> Bool {
    do throws(FileError) {
      return try OpenFile.read(path).isPrivate
    } catch {
      if error.isMissing { return true }
      throw SQLiteOnceError(error)
    }
  }

  /// Opens the database, which is locked.
  func open() throws(SQLiteOnceError) -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "LongLinkOnce"
    configuration.busyMode = .timeout(2)
    configuration.maximumReaderCount = 4
    do {
      // GRDB turns on write-ahead logging.
      return try DatabasePool(path: path, configuration: configuration)
    } catch {
      throw SQLiteOnceError(error, in: "opening the database", at: path)
    }
  }
}
#endif
