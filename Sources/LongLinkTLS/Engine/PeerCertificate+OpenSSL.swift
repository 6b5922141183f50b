// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore

extension PeerCertificate {
  /// The most names of a certificate that are kept.
  private static let mostNames = 64
  /// The most bytes of a name, escaped. A longer one is left out: cut, it could equal another name.
  private static let longestName = 4_096

  /// Describes a certificate that OpenSSL has decoded.
  init(_ certificate: OpaquePointer) {
    var hash = [UInt8](repeating: 0, count: 32)
    _ = unsafe hash.withUnsafeMutableBufferPointer {
      unsafe cll_certificate_hash(certificate, $0.baseAddress)
    }
    unsafe self.init(
      subject: PeerCertificate.name(certificate, ofIssuer: false),
      issuer: PeerCertificate.name(certificate, ofIssuer: true),
      notBefore: cll_certificate_not_before(certificate),
      notAfter: cll_certificate_not_after(certificate),
      sha256: hash,
      names: PeerCertificate.names(certificate))
  }

  private static func name(_ certificate: OpaquePointer, ofIssuer: Bool) -> String {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: longestName + 1) { buffer, count in
      unsafe buffer.withMemoryRebound(to: CChar.self) { buffer in
        count = unsafe cll_certificate_subject(
          certificate, ofIssuer, buffer.baseAddress, buffer.count)
      }
    }
    return text(bytes) ?? ""
  }

  /// The safe text of a name; nil for one that is too long.
  private static func text(_ bytes: [UInt8]) -> String? {
    guard bytes.count <= longestName else { return nil }
    let text = PeerText.whole(bytes)
    return text.utf8.count <= longestName ? text : nil
  }

  private static func names(_ certificate: OpaquePointer) -> [Name] {
    guard let names = unsafe cll_certificate_names(certificate) else { return [] }
    defer { unsafe cll_names_free(names) }
    let count = unsafe min(Int(cll_names_count(names)), mostNames)
    return (0..<count).compactMap { index in
      var address = [CChar](repeating: 0, count: 48)
      return unsafe address.withUnsafeMutableBufferPointer { address in
        var text: UnsafePointer<UInt8>?
        var length = 0
        let kind = unsafe cll_names_at(
          names, CInt(index), &text, &length, address.baseAddress)
        guard kind > 0 else { return nil }
        guard length <= longestName else { return nil }
        let bytes = unsafe UnsafeBufferPointer(start: text, count: length)
        guard let name = unsafe PeerCertificate.text(Array(bytes)) else { return nil }
        switch UInt32(kind) {
        case CLL_NAME_DNS.rawValue: return .dns(name)
        case CLL_NAME_ADDRESS.rawValue: return .address(name)
        case CLL_NAME_URI.rawValue: return .uri(name)
        default: return .email(name)
        }
      }
    }
  }
}
