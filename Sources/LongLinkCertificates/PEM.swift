// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkCertificates

/// Bytes of PEM on their way from and to OpenSSL.
struct PEM {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Copies what OpenSSL has made, and frees it.
  init(_ pem: cll_pem) {
    guard let start = unsafe pem.bytes else { preconditionFailure("OpenSSL cannot make this") }
    bytes = unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: pem.length))
    unsafe cll_pem_free(pem)
  }

  /// Lends the bytes to OpenSSL; an empty value stands for none.
  func withPEM<Result>(_ body: (cll_pem) -> Result) -> Result {
    var copy = bytes
    return unsafe copy.withUnsafeMutableBytes { buffer in
      let start = unsafe buffer.isEmpty ? nil : buffer.baseAddress
      return unsafe body(
        cll_pem(bytes: start?.assumingMemoryBound(to: CChar.self), length: buffer.count))
    }
  }
}
