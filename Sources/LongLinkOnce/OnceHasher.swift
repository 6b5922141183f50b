// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL
internal import LongLinkCore
internal import LongLinkOnceStore
internal import Synchronization

/// SHA-256, computed by libcrypto. The contexts are used again, because to make one costs more than
/// the hash of a short payload.
final class OnceHasher: Sendable {
  /// A context that no thread uses. Threads that come at the same time make their own.
  private let unused = Mutex<Context?>(nil)

  /// Memory of libcrypto, which one thread uses at a time.
  @safe private final class Context: @unchecked Sendable {
    private let pointer: OpaquePointer

    init() {
      guard let pointer = unsafe EVP_MD_CTX_new() else {
        fatalError("libcrypto has no memory for a hash")
      }
      unsafe self.pointer = pointer
      precondition(
        unsafe EVP_DigestInit_ex(pointer, EVP_sha256(), nil) == 1, "libcrypto has no SHA-256")
    }

    deinit {
      unsafe EVP_MD_CTX_free(pointer)
    }

    func hash(_ bytes: RawSpan) -> OnceFingerprint {
      var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
      let isDone = unsafe bytes.withUnsafeBytes { bytes in
        unsafe withUnsafeMutableBytes(of: &words) { words in
          // The digest is as long as the four words. The context begins anew with the same hash.
          unsafe EVP_DigestInit_ex(pointer, nil, nil) == 1
            && (bytes.isEmpty || EVP_DigestUpdate(pointer, bytes.baseAddress, bytes.count) == 1)
            && EVP_DigestFinal_ex(
              pointer, words.baseAddress?.assumingMemoryBound(to: UInt8.self), nil) == 1
        }
      }
      precondition(isDone, "libcrypto could not hash")
      return OnceFingerprint(
        UInt64(bigEndian: words.0), UInt64(bigEndian: words.1), UInt64(bigEndian: words.2),
        UInt64(bigEndian: words.3))
    }
  }

  func hash(_ bytes: RawSpan) -> OnceFingerprint {
    let context = unused.withLock { $0.take() } ?? Context()
    let hash = context.hash(bytes)
    unused.withLock { $0 = context }
    return hash
  }

  func hash(_ bytes: [UInt8]) -> OnceFingerprint { unsafe hash(bytes.span.bytes) }
}
