// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Counts the memory of OpenSSL, exactly, in a process that exists for that.
enum OpenSSLMemory {
  private static let bytes = Atomic(0)
  /// In front of each allocation stands its size. What follows stays aligned.
  private static let header = 16

  /// The bytes that OpenSSL has allocated and not freed.
  static var held: Int { bytes.load(ordering: .relaxed) }

  /// Begins to count. Nothing may have used OpenSSL before.
  static func count() {
    let isSet = unsafe CRYPTO_set_mem_functions(
      { size, _, _ in unsafe OpenSSLMemory.allocate(nil, size) },
      { former, size, _, _ in unsafe OpenSSLMemory.allocate(former, size) },
      { former, _, _ in unsafe free(OpenSSLMemory.start(of: former)) })
    precondition(isSet == 1, "something has used OpenSSL before")
  }

  /// Where an allocation begins, which counts no more.
  @unsafe private static func start(
    of memory: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer? {
    guard let memory = unsafe memory else { return nil }
    let start = unsafe memory - header
    bytes.subtract(unsafe start.load(as: Int.self), ordering: .relaxed)
    return unsafe start
  }

  /// Allocates, or resizes an allocation; none is left of one without bytes.
  @unsafe private static func allocate(
    _ former: UnsafeMutableRawPointer?, _ size: Int
  ) -> UnsafeMutableRawPointer? {
    guard size > 0 else {
      unsafe free(start(of: former))
      return nil
    }
    guard let start = unsafe realloc(start(of: former), header + size) else { return nil }
    unsafe start.storeBytes(of: size, as: Int.self)
    bytes.add(size, ordering: .relaxed)
    return unsafe start + header
  }
}
