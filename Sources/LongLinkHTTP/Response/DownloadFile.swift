// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// The file of a download until it is whole: `NAME.part`, and beside it a record of the version of
/// which its bytes are. Its methods block: call them off the loop.
///
/// The bytes always belong to the version in the record: it is removed before bytes of another
/// version are written, and written before the first of them.
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

  /// The path with `.part`, or with a hash in place of a name that would leave no room for suffixes
  /// within the 255 bytes of a name.
  private static func partName(of path: String) -> String {
    let bytes = Array(path.utf8)
    let folder = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    let name = bytes[folder...]
    guard name.count + ".part.etag.new".utf8.count > 255 else { return path + ".part" }
    let short = Array(SHA256Digest.hash(of: Array(name)).prefix(16)).hexadecimal
    return String(decoding: bytes[..<folder], as: UTF8.self) + "longlink-\(short).part"
  }

  /// Opens and locks what the path names; nil if another download has it.
  private static func locked(_ path: String) throws(FileError) -> OpenFile? {
    for _ in 0..<8 {
      let file = try OpenFile.update(path)
      guard try file.lock() else { return nil }
      // Between the two, another download may have given the file its final name.
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

  /// What is there, and of which version; nil if that is not certain.
  func kept(of url: String) throws(DownloadProblem) -> KeptPart? {
    guard let bytes = try? record.read(limit: DownloadFile.mostRecordBytes) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.count == 6, lines[0] == DownloadFile.title, lines[1] == url, lines[4] == "end"
    else { return nil }
    let size = try DownloadProblem.wrapping { () throws(FileError) in try part.identity.size }
    return size > 0 ? KeptPart(count: size, tag: lines[2], total: UInt64(lines[3])) : nil
  }

  /// Begins with no bytes of a version, which has `total` bytes if that is known. Without a tag it
  /// cannot be gone on with, nor without a record of it. Returns whether it can.
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
      // An older record was removed.
      return false
    }
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(DownloadProblem) {
    if let error = part.write(bytes[...], at: offset).error { throw DownloadProblem(error) }
  }

  /// Gives the whole file its name.
  func finish() throws(DownloadProblem) {
    try DownloadProblem.wrapping { () throws(FileError) in
      try part.sync()
      try FileCall.retrying("rename", part.path) { unsafe rename(part.path, path) }
    }
    record.remove()
    FileCall.syncFolder(of: path)
  }

  /// Removes what cannot be gone on with.
  func abandon() {
    record.remove()
    _ = unsafe unlink(part.path)
  }
}

/// The part of a download that is there.
struct KeptPart {
  let count: UInt64
  let tag: String
  /// The bytes of the whole version, if they are known.
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

  /// Runs work that blocks off the loop.
  static func offloading<Value: Sendable>(
    _ work: @escaping @Sendable () throws(DownloadProblem) -> Value
  ) async throws(DownloadProblem) -> Value {
    try await EventLoop.shared.offloading {
      Result { () throws(DownloadProblem) in try work() }
    }.get()
  }
}
#endif
