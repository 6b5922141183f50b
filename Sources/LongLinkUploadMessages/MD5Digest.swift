// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL

/// The MD5 hash, computed by libcrypto. MD5 is broken: use it only where a protocol prescribes it
/// for passwords, such as HTTP's Digest.
package enum MD5Digest {
  /// The number of bytes of a hash.
  package static let byteCount = 16

  /// Returns the MD5 of bytes; nil if this libcrypto is not allowed to compute it.
  package static func hash(of bytes: [UInt8]) -> [UInt8]? {
    var isDone = false
    let hash = unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      isDone =
        unsafe bytes.withUnsafeBytes { input in
          unsafe EVP_Digest(
            input.baseAddress, input.count, buffer.baseAddress, nil, EVP_md5(), nil)
        } == 1
      count = isDone ? byteCount : 0
    }
    return isDone ? hash : nil
  }
}
