// SPDX-License-Identifier: Apache-2.0

#if SQLite
internal import GRDB
internal import LongLinkCore
internal import LongLinkTransport

/// Why an `SQLiteOnceStore` cannot be opened, or could not do what was asked.
public struct SQLiteOnceError: Error, Hashable, Sendable {
  /// The kind of error.
  public let code: Code
  /// The path of the file that the error is about.
  public let path: String
  /// What was wrong, and what you can do.
  public let detail: String

  init(_ code: Code, _ path: String, _ detail: String) {
    self.code = code
    self.path = path
    self.detail = detail
  }

  /// A kind of error; later versions may add kinds.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The kind in a few words.
    public let description: String

    private init(_ description: String) { self.description = description }

    /// Another store, of this process or of another one, has the file open.
    public static let inUse = Code("another store has the file open")
    /// The file or one beside it belongs to another user, others may read or write it, it has
    /// several names, or it is no regular file.
    public static let notPrivate = Code("the file is not private")
    /// The file is damaged, or it is no SQLite database.
    public static let damaged = Code("the file is damaged or no database")
    /// A newer version of LongLink has written the records.
    public static let newerVersion = Code("the records are of a newer version")
    /// The file cannot grow: its file system is full. The store works again once there is space.
    public static let noSpace = Code("no space is left")
    /// Another connection to the file was writing for too long.
    public static let busy = Code("the file is locked")
    /// The system or SQLite reported another error.
    public static let failed = Code("the file cannot be read or written")
    /// The store was closed before.
    public static let closed = Code("the store is closed")
    /// `complete(_:with:in:)` was called outside a transaction.
    public static let noTransaction = Code("there is no transaction")
  }
}

extension SQLiteOnceError: CustomStringConvertible {
  /// The path, the kind and the detail in one line.
  public var description: String { "\(PeerText(path)): \(code): \(detail)" }
}

extension SQLiteOnceError {
  /// An error of SQLite in an operation, such as "writing records".
  init(_ error: any Error, in operation: String, at path: String) {
    guard let error = error as? DatabaseError else {
      self = error as? SQLiteOnceError ?? SQLiteOnceError(.failed, path, "\(operation): \(error)")
      return
    }
    let text = "SQLite, \(operation): \(error.message ?? "no text") (\(error.extendedResultCode))"
    switch error.resultCode {
    case .SQLITE_FULL:
      self.init(.noSpace, path, "\(text). Make space; the store then works again")
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      self.init(
        .damaged, path,
        "\(text). Restore a backup, with `renew()`, or move the store's files away")
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(.busy, path, "\(text). Keep the transactions of other connections short")
    default:
      self.init(.failed, path, "\(text). Look at the disk, and at who may use the file")
    }
  }

  static func notPrivate(_ path: String) -> SQLiteOnceError {
    SQLiteOnceError(
      .notPrivate, path,
      "it belongs to another user, or others may read or write it. Change its owner, or its mode "
        + "to 0600")
  }

  /// An error of the system for the file, or one beside it.
  init(_ error: FileError) {
    if error.isUnprotected {
      self = .notPrivate(error.path)
    } else if error.isDirectory || error.isNotRegular {
      self.init(.notPrivate, error.path, "it is no regular file. Choose another path")
    } else if error.isNoSpace {
      self.init(.noSpace, error.path, "\(error.reason). Make space")
    } else {
      self.init(.failed, error.path, "\(error.reason). The folder has to exist, and to be writable")
    }
  }
}
#endif
