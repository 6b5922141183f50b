// SPDX-License-Identifier: Apache-2.0

import LongLinkUploadMessages
import Testing

@Suite struct DigestTests {
  /// FIPS 180-2, appendix B.
  @Test(arguments: [
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func `the hash is that of the standard, however the bytes are cut`(
    text: String, expected: String
  ) {
    let bytes = Array(text.utf8)
    #expect(hexadecimal(SHA256Digest.hash(of: bytes)) == expected)
    var digest = SHA256Digest()
    for byte in bytes { digest.update([byte]) }
    #expect(hexadecimal(digest.finalize()) == expected)
  }

  @Test func `a copy goes on alone`() {
    var digest = SHA256Digest()
    digest.update(Array("ab".utf8))
    var other = digest.copy()
    other.update(Array("x".utf8))
    digest.update(Array("c".utf8))
    #expect(digest.finalize() == SHA256Digest.hash(of: Array("abc".utf8)))
    #expect(other.finalize() == SHA256Digest.hash(of: Array("abx".utf8)))
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
