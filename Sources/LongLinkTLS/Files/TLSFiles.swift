// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import COpenSSL
internal import LongLinkDriver
internal import LongLinkTransport

/// The content of the files that a configuration names, at one moment.
///
/// It holds private keys: it is made to build one context, and overwrites them when it is released.
/// Only the digests are kept.
final class TLSFiles {
  /// The most bytes of a file.
  private static let limit: UInt64 = 4 << 20

  private var contents: [String: [UInt8]] = [:]
  /// The SHA-256 of each file, by its path.
  private(set) var digests: [String: [UInt8]] = [:]

  /// Reads all of the files. It blocks.
  init(_ sources: [(field: String, source: TLSSource)]) throws(LongLinkError) {
    for (field, source) in sources {
      guard let path = source.path, contents[path] == nil else { continue }
      do throws(FileError) {
        let bytes = try TLSFiles.read(path)
        digests[path] = TLSFiles.hash(bytes)
        contents[path] = bytes
      } catch {
        throw .configuration(field, "\(error)")
      }
    }
  }

  deinit {
    // A copy of the paths: while the dictionary is iterated, a change would first copy the bytes.
    for path in Array(contents.keys) {
      unsafe contents[path]?.withUnsafeMutableBufferPointer {
        unsafe cll_tls_wipe($0.baseAddress, $0.count)
      }
    }
  }

  private static func read(_ path: String) throws(FileError) -> [UInt8] {
    let file = try OpenFile.read(path)
    // Reads a byte more than the size, so that a file that grows meanwhile is noticed.
    let size = min(try file.identity.size, limit)
    var bytes = try file.read(Int(size) + 1, at: 0)
    if bytes.count > size { bytes = try file.read(Int(limit) + 1, at: 0) }
    guard bytes.count <= limit else { throw FileError("read", path, errno: FileError.tooLarge) }
    return bytes
  }

  /// The SHA-256 of bytes.
  static func hash(_ bytes: [UInt8]) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      let status = unsafe EVP_Digest(bytes, bytes.count, buffer.baseAddress, nil, EVP_sha256(), nil)
      precondition(status == 1, "libcrypto has no SHA-256")
      count = 32
    }
  }

  /// The bytes of a source that was read.
  func bytes(of source: TLSSource) -> [UInt8] {
    switch source {
    case .bytes(let bytes): bytes
    case .file(let path): contents[path] ?? []
    }
  }
}

/// The states of a client's or server's files when they were last looked at.
struct TLSFileStates: Sendable {
  /// The states of files by path; nil for a file that is not there.
  typealias States = [String: FileState?]

  private var used: States
  /// The states for which a failure was reported last, and the failure; nil if the files are in
  /// use.
  private var failed: (states: States, error: LongLinkError)?

  init(_ states: States) {
    used = states
  }

  /// The states of files now. It blocks.
  static func now(_ paths: Set<String>) -> States {
    var states: States = [:]
    for path in paths { states[path] = .some(try? FileState(at: path)) }
    return states
  }

  /// Whether the files have to be read: they have changed, or could not be used the last time.
  func isDue(_ states: States) -> Bool { failed != nil || states != used }

  /// Records that the files were read and are in use.
  mutating func use(_ states: States) {
    used = states
    failed = nil
  }

  /// Records that the files cannot be used. Returns false if the same failure was recorded before.
  mutating func fail(_ states: States, _ error: LongLinkError) -> Bool {
    if let failed, failed == (states, error) { return false }
    failed = (states, error)
    return true
  }
}
