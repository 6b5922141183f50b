// SPDX-License-Identifier: Apache-2.0

/// The certificate that the peer has shown, as text. The peer has chosen all of it: trust it only
/// where it was verified.
///
/// Names are never shortened, so two that are equal here are equal in the certificates. Control
/// characters, format characters and backslashes are escaped. A name that then has more than 4,096
/// bytes is left out.
public struct PeerCertificate: Hashable, Sendable {
  /// The subject's distinguished name (RFC 4514), escaped; empty if the certificate has none, or
  /// one of more than 4,096 bytes.
  public let subject: String
  /// The issuer's distinguished name (RFC 4514), escaped; empty if the certificate has none, or one
  /// of more than 4,096 bytes.
  public let issuer: String
  /// When the certificate becomes valid, in seconds since 1970.
  public let notBefore: Int64
  /// When the certificate expires, in seconds since 1970.
  public let notAfter: Int64
  /// The SHA-256 hash of the certificate (of its DER form): 32 bytes.
  public let sha256: [UInt8]
  /// The subject alternative names, in the certificate's order: those of the first 64 whose kind is
  /// in ``Name`` and that have at most 4,096 bytes.
  public let names: [Name]

  /// A subject alternative name.
  public enum Name: Hashable, Sendable {
    /// A host name, perhaps with a wildcard.
    case dns(String)
    /// An IP address, as text.
    case address(String)
    /// A URI, such as a SPIFFE ID.
    case uri(String)
    /// An email address.
    case email(String)
  }

  package init(
    subject: String, issuer: String, notBefore: Int64, notAfter: Int64, sha256: [UInt8],
    names: [Name]
  ) {
    self.subject = subject
    self.issuer = issuer
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.sha256 = sha256
    self.names = names
  }
}

extension PeerCertificate.Name: CustomStringConvertible {
  /// The kind and the name, as OpenSSL writes them: `DNS:client`, `IP Address:10.0.0.1`,
  /// `URI:spiffe://example.com/billing`, `email:ann@example.com`.
  public var description: String {
    switch self {
    case .dns(let text): "DNS:\(text)"
    case .address(let text): "IP Address:\(text)"
    case .uri(let text): "URI:\(text)"
    case .email(let text): "email:\(text)"
    }
  }
}

extension PeerCertificate: CustomStringConvertible {
  /// The subject and the issuer, cut to 200 bytes each, the dates, and the hash in hexadecimal.
  public var description: String {
    """
    subject \(PeerText.shortened(subject)), issuer \(PeerText.shortened(issuer)), \
    valid from \(PeerCertificate.date(notBefore)) to \(PeerCertificate.date(notAfter)), \
    SHA-256 \(sha256.hexadecimal)
    """
  }

  /// Returns a time in seconds since 1970 as text: `2026-11-24T05:53:00Z`.
  package static func date(_ seconds: Int64) -> String {
    let (days, rest) = seconds.flooredDivision(by: 86_400)
    // Days since 0000-03-01, so that leap days end a year (Hinnant, chrono-compatible algorithms).
    let (era, day) = (days + 719_468).flooredDivision(by: 146_097)
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
    let dayOfYear = day - (365 * year + year / 4 - year / 100)
    let month = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
    let realMonth = month < 10 ? month + 3 : month - 9
    let realYear = year + era * 400 + (realMonth <= 2 ? 1 : 0)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let time = "\(two(rest / 3_600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
    return "\(realYear)-\(two(realMonth))-\(two(dayOfMonth))T\(time)Z"
  }
}

extension Int64 {
  /// The quotient rounded down, and the remainder, which is not negative.
  fileprivate func flooredDivision(by divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
