// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL

/// Why a peer's certificates were not decoded.
package enum ChainProblem: CInt {
  /// There are more than `HandshakeBounds.mostCertificates`.
  case long = 1
  /// The certificates have too many parts, or are damaged.
  case crowded
  /// A key is of a kind, a curve or a size that is not used in TLS.
  case key
  case compressed
}

/// What a peer may make OpenSSL decode before it has proved anything.
///
/// OpenSSL decodes all certificates of a message, their names and keys included, before it asks
/// whether they can be verified. So a stranger could make it work for seconds, for instance to find
/// points on curves of the stranger's own, or hold many small parts of names. What a message may
/// have is decided here, before OpenSSL decodes it.
package enum HandshakeBounds {
  /// The most certificates that a peer may send.
  static let mostCertificates = 10
  /// The most ASN.1 parts in all certificates of a message. A certificate has about 100.
  private static let mostPartsOfClient = 512
  private static let mostPartsOfServer = 4_096
  /// The most levels of ASN.1 parts within parts.
  private static let mostDepth = 16
  /// The largest public key, in bytes: RSA with 8,192 bits.
  private static let largestKey = 1_152

  /// The most groups that a client may offer, and the most keys that it may send for them.
  private static let mostGroups = 64
  private static let mostShares = 8
  /// The most bytes of a client's request for the status of certificates, which no server here
  /// sends.
  private static let largestStatus = 1_024

  /// The type of a message with compressed certificates (RFC 8879). OpenSSL knows it from 3.2 on,
  /// and reads it only if it was offered, which `set_common` prevents.
  private static let compressedCertificate: UInt8 = 25
  private static let headerLength = Int(SSL3_HM_HEADER_LENGTH)

  // MARK: Certificates

  /// Returns the problem of a handshake message with certificates, if it has one, and changes the
  /// message so that OpenSSL refuses it. The message begins with its header; `isNew` is true for
  /// TLS 1.3, false for 1.2.
  package static func judge(
    _ message: inout MutableSpan<UInt8>, fromClient: Bool, isNew: Bool
  ) -> ChainProblem? {
    guard let problem = problem(in: message.span, fromClient: fromClient, isNew: isNew) else {
      return nil
    }
    // OpenSSL ends the handshake for a list that claims to be longer than it is, and for an unknown
    // compression algorithm.
    var start = headerLength
    if isNew, problem != .compressed {
      message[start] = 0
      start += 1
    }
    for index in start..<start + (problem == .compressed ? 2 : 3) { message[index] = 0xFF }
    return problem
  }

  private static func problem(
    in message: Span<UInt8>, fromClient: Bool, isNew: Bool
  ) -> ChainProblem? {
    guard message.count >= headerLength + 4 else { return nil }
    if message[0] == compressedCertificate { return .compressed }
    guard message[0] == UInt8(SSL3_MT_CERTIFICATE) else { return nil }
    var rest = headerLength..<message.count
    // If the message is cut short, OpenSSL reports it.
    if isNew, message.takeVector(1, from: &rest) == nil { return nil }
    guard var list = message.takeVector(3, from: &rest) else { return nil }
    var (count, left) = (0, fromClient ? mostPartsOfClient : mostPartsOfServer)
    while !list.isEmpty {
      guard count < mostCertificates else { return .long }
      count += 1
      guard let certificate = message.takeVector(3, from: &list) else { return nil }
      if isNew, message.takeVector(2, from: &list) == nil { return nil }
      guard message.countParts(certificate, depth: mostDepth, left: &left) else { return .crowded }
      guard hasUsableKey(message, certificate) else { return .key }
    }
    return nil
  }

  /// Whether the public key of a certificate (RFC 5280, 4.1) is usable.
  private static func hasUsableKey(_ message: Span<UInt8>, _ certificate: Range<Int>) -> Bool {
    var rest = certificate
    guard var whole = message.takeSequence(from: &rest),
      var fields = message.takeSequence(from: &whole)
    else { return false }
    // The version may be missing.
    var ahead = fields
    guard let version = message.takePart(from: &ahead) else { return false }
    if !version.isUniversal, version.tag == 0 { fields = ahead }
    // The serial number; then algorithm, issuer, validity and subject.
    guard message.takePart(from: &fields) != nil else { return false }
    for _ in 0..<4 {
      guard message.takeSequence(from: &fields) != nil else { return false }
    }
    guard let key = message.takeSequence(from: &fields) else { return false }
    return isUsable(message, key)
  }

  /// RSA and RSA-PSS (1.2.840.113549.1.1.1 and 10), Ed25519 and Ed448 (1.3.101.112 and 113).
  private static let kinds: [[UInt8]] = [
    [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1], [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 10],
    [0x2B, 101, 112], [0x2B, 101, 113],
  ]
  /// Keys on elliptic curves (1.2.840.10045.2.1).
  private static let elliptic: [[UInt8]] = [[0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1]]
  /// P-256 (1.2.840.10045.3.1.7), P-384 and P-521 (1.3.132.0.34 and 35).
  private static let curves: [[UInt8]] = [
    [0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7], [0x2B, 0x81, 4, 0, 34], [0x2B, 0x81, 4, 0, 35],
  ]

  /// Whether a public key is of a kind that is used in TLS and that OpenSSL decodes quickly.
  private static func isUsable(_ message: Span<UInt8>, _ key: Range<Int>) -> Bool {
    var rest = key
    guard key.count <= largestKey, var algorithm = message.takeSequence(from: &rest),
      let kind = message.takePart(from: &algorithm), kind.has(V_ASN1_OBJECT)
    else { return false }
    if message.has(kinds, at: kind.content) { return true }
    guard message.has(elliptic, at: kind.content),
      let curve = message.takePart(from: &algorithm), curve.has(V_ASN1_OBJECT)
    else { return false }
    return message.has(curves, at: curve.content)
  }

  // MARK: Hellos

  /// Whether an extension of a client's hello has more groups, or keys for them, than OpenSSL
  /// compares with its own in reasonable time, or more names than it decodes in reasonable memory.
  package static func isCrowded(_ extensionType: CInt, _ bytes: Span<UInt8>) -> Bool {
    switch extensionType {
    case TLSEXT_TYPE_supported_groups: bytes.count > 2 + 2 * mostGroups
    case TLSEXT_TYPE_status_request: bytes.count > largestStatus
    case TLSEXT_TYPE_certificate_authorities: hasManyNames(bytes)
    case TLSEXT_TYPE_key_share: hasManyShares(bytes)
    default: false
    }
  }

  private static func hasManyNames(_ bytes: Span<UInt8>) -> Bool {
    var (rest, left) = (bytes.indices, mostPartsOfClient)
    // If the list is cut short, OpenSSL reports it.
    guard var list = bytes.takeVector(2, from: &rest) else { return false }
    while let name = bytes.takeVector(2, from: &list) {
      guard bytes.countParts(name, depth: mostDepth, left: &left) else { return true }
    }
    return false
  }

  private static func hasManyShares(_ bytes: Span<UInt8>) -> Bool {
    var rest = bytes.indices.dropFirst(2)
    var count = 0
    // A group, a length and a key for each share (RFC 8446, 4.2.8).
    while let head = bytes.takeNumber(4, from: &rest) {
      count += 1
      guard count <= mostShares else { return true }
      guard bytes.take(head & 0xFFFF, from: &rest) != nil else { return false }
    }
    return false
  }
}
