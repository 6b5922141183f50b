// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL

/// The SHA-256 of bytes that come in pieces, computed by libcrypto.
@safe package struct SHA256Digest: ~Copyable {
  /// The number of bytes of a hash.
  package static let byteCount = 32

  /// Only this value has the pointer.
  private let context: OpaquePointer

  /// Makes the digest of no bytes.
  package init() {
    guard let context = unsafe EVP_MD_CTX_new() else {
      fatalError("libcrypto has no memory for a hash")
    }
    unsafe self.context = context
    let status = unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil)
    precondition(status == 1, "libcrypto has no SHA-256")
  }

  deinit {
    unsafe EVP_MD_CTX_free(context)
  }

  /// Adds bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    let status = unsafe EVP_DigestUpdate(context, start, bytes.count)
    precondition(status == 1, "libcrypto could not add bytes to a hash")
  }

  /// Adds bytes.
  package mutating func update(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Adds bytes.
  package mutating func update(_ bytes: ArraySlice<UInt8>) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Returns a second digest of the same bytes, which goes on independently.
  package func copy() -> SHA256Digest {
    let other = SHA256Digest()
    let status = unsafe EVP_MD_CTX_copy_ex(other.context, context)
    precondition(status == 1, "libcrypto could not copy a hash")
    return other
  }

  /// Returns the hash of all bytes that were added.
  package consuming func finalize() -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
      let status = unsafe EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
      precondition(status == 1, "libcrypto could not end a hash")
      count = Self.byteCount
    }
  }

  /// Returns the SHA-256 of bytes.
  package static func hash(of bytes: [UInt8]) -> [UInt8] {
    var digest = SHA256Digest()
    digest.update(bytes)
    return digest.finalize()
  }
}

// The context belongs to one value alone, and no function changes it without exclusive access.
extension SHA256Digest: @unchecked Sendable {}
