// SPDX-License-Identifier: Apache-2.0

#if HTTP
#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import LongLinkDriver
internal import LongLinkTransport

/// The file of a download until it is whole: `NAME.part`, and beside it a record of the version of
/// which its bytes are. Its methods block: call them off the loop.
///
/// The bytes always belong to the version in the record: it is removed before bytes of another
/// version are written, and written before the first of them.
final class DownloadFile: Sendable {
  private let path: String
  private let partPath: String
  private let record: SmallFile
  private let descriptor: CInt

  private static let title = "longlink download 1"
  private static let mostRecordBytes = 32_768

  /// Opens or creates the part. Throws if another process writes it.
  init(for path: String) throws(DownloadProblem) {
    let partPath = path + ".part"
    self.path = path
    self.partPath = partPath
    record = SmallFile(path + ".part.etag")
    var descriptor: CInt = -1
    try DownloadFile.check("open") {
      descriptor = unsafe open(
        partPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o666)
      return descriptor
    }
    self.descriptor = descriptor
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      throw DownloadProblem(description: "another download writes \(path).part")
    }
    var status = stat()
    try DownloadFile.check("stat") { unsafe fstat(descriptor, &status) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw DownloadProblem(description: "\(path).part is not a regular file")
    }
  }

  deinit { close(descriptor) }

  /// How many bytes of which version are there; nil if that is not certain.
  func kept(of url: String) throws(DownloadProblem) -> (count: UInt64, tag: String)? {
    guard let bytes = try? record.read(limit: DownloadFile.mostRecordBytes) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.count == 5, lines[0] == DownloadFile.title, lines[1] == url, lines[3] == "end"
    else { return nil }
    var status = stat()
    try DownloadFile.check("stat") { unsafe fstat(descriptor, &status) }
    return status.st_size > 0 ? (UInt64(status.st_size), lines[2]) : nil
  }

  /// Begins with no bytes of a version. Without a tag it cannot be gone on with.
  func begin(_ url: String, tag: String?) throws(DownloadProblem) {
    record.remove()
    try DownloadFile.check("ftruncate") { ftruncate(descriptor, 0) }
    try DownloadFile.check("fsync") { fsync(descriptor) }
    guard let tag else { return }
    let text = [DownloadFile.title, url, tag, "end", ""].joined(separator: "\n")
    do throws(FileError) {
      try record.replace(with: Array(text.utf8), suffix: "new")
    } catch {
      throw DownloadProblem(description: "\(error)")
    }
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(DownloadProblem) {
    var written = 0
    while written < bytes.count {
      try DownloadFile.check("write") {
        let count = unsafe bytes.withUnsafeBytes { buffer in
          let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
          return unsafe pwrite(
            descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(written))
        }
        written += max(0, count)
        return count < 0 ? -1 : 0
      }
    }
  }

  /// Gives the whole file its name.
  func finish() throws(DownloadProblem) {
    try DownloadFile.check("fsync") { fsync(descriptor) }
    try DownloadFile.check("rename") { unsafe rename(partPath, path) }
    record.remove()
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let handle = unsafe open(folder, O_RDONLY | O_CLOEXEC)
    guard handle >= 0 else { return }
    // Some file systems cannot flush a folder, and keep its names all the same.
    _ = fsync(handle)
    close(handle)
  }

  /// Removes what cannot be gone on with.
  func abandon() {
    record.remove()
    _ = unsafe unlink(partPath)
  }

  private static func check(
    _ operation: String, _ call: () -> CInt
  ) throws(DownloadProblem) {
    while call() < 0 {
      let code = errno
      if code != EINTR {
        throw DownloadProblem(description: "\(operation): \(SocketError.text(of: code))")
      }
    }
  }
}

/// Why the file of a download cannot be used.
struct DownloadProblem: Error, CustomStringConvertible {
  let description: String

  /// Runs work that blocks off the loop.
  static func offloading<Value: Sendable>(
    _ work: @escaping @Sendable () throws(DownloadProblem) -> Value
  ) async throws(DownloadProblem) -> Value {
    let gate = Gate<Result<Value, DownloadProblem>>()
    let loop = EventLoop.shared
    await loop.run {
      loop.offload {
        gate.open(Result { () throws(DownloadProblem) in try work() })
      }
    }
    return try await gate.value.get()
  }
}
#endif
