// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// The hash of the first bytes of an upload. Each byte is added once, however often it is read. The
/// bytes of files are added off the loop, when they are read.
final class PrefixHash: Sendable {
  private struct State: ~Copyable {
    var digest = SHA256Digest()
    var count: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The number of bytes that were added.
  var count: UInt64 { state.withLock(of: self) { $0.count } }

  /// The SHA-256 of the bytes that were added.
  var sha256: [UInt8] { state.withLock(of: self) { $0.digest.copy().finalize() } }

  /// Adds those of the bytes that were not added before. The first of them must not leave a gap.
  func add(_ bytes: [UInt8], at offset: UInt64) {
    state.withLock(of: self) { state in
      precondition(offset <= state.count, "there are bytes between those that are hashed")
      let known = Int(clamping: state.count - offset)
      guard known < bytes.count else { return }
      state.digest.update(bytes[known...])
      state.count = offset + UInt64(bytes.count)
    }
  }
}
