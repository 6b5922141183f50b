// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// The file of a download until it is complete: `NAME.part`, and beside it a record of the version
/// to which its bytes belong. Its methods block: call them off the loop.
///
/// The bytes always belong to the version in the record: the record is removed before bytes of
/// another version are written, and written before the first of them.
final class DownloadFile: Sendable {
  private let path: String
  private let part: OpenFile
  private let record: SmallFile

  private static let title = "longlink download 2"
  private static let mostRecordBytes = 32_768

  /// Opens or creates the part. Throws if another download writes it.
  init(for path: String) throws(DownloadProblem) {
    self.path = path
    let name = DownloadFile.partName(of: path)
    record = SmallFile(name + ".etag")
    let part = try DownloadProblem.wrapping { () throws(FileError) in
      try DownloadFile.locked(name)
    }
    guard let part else { throw DownloadProblem(description: "another download writes \(name)") }
    self.part = part
  }

  /// The path with `.part`. If the name would be longer than 255 bytes with all suffixes, a hash
  /// takes its place.
  private static func partName(of path: String) -> String {
    let bytes = Array(path.utf8)
    let folder = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    let name = bytes[folder...]
    guard name.count + ".part.etag.new".utf8.count > 255 else { return path + ".part" }
    let short = Array(SHA256Digest.hash(of: Array(name)).prefix(16)).hexadecimal
    return String(decoding: bytes[..<folder], as: UTF8.self) + "longlink-\(short).part"
  }

  /// Opens and locks the file at a path; nil if another download has locked it.
  private static func locked(_ path: String) throws(FileError) -> OpenFile? {
    for _ in 0..<8 {
      let file = try OpenFile.update(path)
      guard try file.lock() else { return nil }
      // Before the lock, another download may have renamed the file.
      let own = try file.identity
      if let named = try? FileIdentity(at: path), named.device == own.device,
        named.inode == own.inode
      {
        return file
      }
      file.unlock()
    }
    return nil
  }

  /// Lets another download write the part.
  func unlock() { part.unlock() }

  /// The bytes that are there, and their version; nil if the version is not certain.
  func kept(of url: String) throws(DownloadProblem) -> KeptPart? {
    guard let bytes = try? record.read(limit: DownloadFile.mostRecordBytes) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.count == 6, lines[0] == DownloadFile.title, lines[1] == url, lines[4] == "end"
    else { return nil }
    let size = try DownloadProblem.wrapping { () throws(FileError) in try part.identity.size }
    return size > 0 ? KeptPart(count: size, tag: lines[2], total: UInt64(lines[3])) : nil
  }

  /// Empties the part for a version, which has `total` bytes if that is known. Returns whether the
  /// download can be resumed later: only with a tag, and if its record could be written.
  func begin(_ url: String, tag: String?, total: UInt64?) throws(DownloadProblem) -> Bool {
    record.remove()
    try DownloadProblem.wrapping { () throws(FileError) in
      try part.truncate(to: 0)
      try part.sync()
    }
    guard let tag else { return false }
    let size = total.map { "\($0)" } ?? ""
    let text = [DownloadFile.title, url, tag, size, "end", ""].joined(separator: "\n")
    do throws(FileError) {
      try record.replace(with: Array(text.utf8), suffix: "new")
      return true
    } catch {
      // The older record is already removed.
      return false
    }
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(DownloadProblem) {
    if let error = part.write(bytes[...], at: offset).error { throw DownloadProblem(error) }
  }

  /// Gives the complete file its name.
  func finish() throws(DownloadProblem) {
    try DownloadProblem.wrapping { () throws(FileError) in
      try part.sync()
      try FileCall.retrying("rename", part.path) { unsafe rename(part.path, path) }
    }
    record.remove()
    FileCall.syncFolder(of: path)
  }

  /// Removes a part that cannot be resumed.
  func abandon() {
    record.remove()
    _ = unsafe unlink(part.path)
  }
}

/// The bytes of an earlier download that can be resumed.
struct KeptPart {
  let count: UInt64
  let tag: String
  /// The number of bytes of the whole version; nil if it is not known.
  let total: UInt64?
}

/// Why the file of a download cannot be used.
struct DownloadProblem: Error, CustomStringConvertible {
  let description: String

  init(description: String) { self.description = description }

  init(_ error: FileError) {
    description = error.isNotRegular ? "\(error.path) is not a regular file" : error.reason
  }

  static func wrapping<Value>(
    _ work: () throws(FileError) -> Value
  ) throws(DownloadProblem) -> Value {
    do throws(FileError) { return try work() } catch { throw DownloadProblem(error) }
  }

  /// Runs blocking work off the loop.
  static func offloading<Value: Sendable>(
    _ work: @escaping @Sendable () throws(DownloadProblem) -> Value
  ) async throws(DownloadProblem) -> Value {
    try await EventLoop.shared.offloading {
      Result { () throws(DownloadProblem) in try work() }
    }.get()
  }
}
#endif
