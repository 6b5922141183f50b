// SPDX-License-Identifier: Apache-2.0

/// Why a connection could not be secured, or is no longer secure.
public struct SecurityFailure: Hashable, Sendable {
  /// The kind of failure. Later versions may add codes.
  public struct Code: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    private let name: String

    private init(_ name: String) {
      self.name = name
    }

    /// The peer's certificate is for other names.
    public static let nameMismatch = Code("nameMismatch")
    /// A certificate of the peer's chain has expired.
    public static let expired = Code("expired")
    /// A certificate of the peer's chain is not valid yet; the clock of this machine may be behind.
    public static let notYetValid = Code("notYetValid")
    /// No trusted authority has issued the peer's certificate.
    public static let unknownAuthority = Code("unknownAuthority")
    /// The peer's certificate is issued by itself, and is not trusted.
    public static let selfSigned = Code("selfSigned")
    /// A certificate of the peer's chain is revoked.
    public static let revoked = Code("revoked")
    /// A certificate of the peer's chain is not issued for the peer's role: TLS client or server.
    public static let wrongPurpose = Code("wrongPurpose")
    /// The peer's certificate or its chain is invalid for a reason without a code of its own.
    public static let invalidCertificate = Code("invalidCertificate")
    /// No certificate of the verified chain has one of the pinned keys.
    public static let pinMismatch = Code("pinMismatch")
    /// The client has no certificate, and the server requires one.
    public static let clientCertificateRequired = Code("clientCertificateRequired")
    /// The peer does not accept this side's certificate; `detail` has its reason.
    public static let certificateRejected = Code("certificateRejected")
    /// The two sides have no version of TLS in common.
    public static let noCommonVersion = Code("noCommonVersion")
    /// The two sides have no cipher, group or signature algorithm in common.
    public static let noCommonCipher = Code("noCommonCipher")
    /// The two sides do not agree on the application protocol (ALPN).
    public static let noApplicationProtocol = Code("noApplicationProtocol")
    /// The peer does not speak TLS.
    public static let plainPeer = Code("plainPeer")
    /// The peer speaks TLS, and this side does not.
    public static let securePeer = Code("securePeer")
    /// The peer ended the connection with a TLS alert that has no code of its own.
    public static let alert = Code("alert")
    /// The peer broke a rule of TLS, or bytes were changed on the way.
    public static let damaged = Code("damaged")
    /// The peer's bytes ended in the handshake, or in the middle of a frame, without the notice of
    /// TLS that proves that the peer ended them.
    public static let cutOff = Code("cutOff")

    /// All codes of this version.
    public static let allCases: [Code] = [
      .nameMismatch, .expired, .notYetValid, .unknownAuthority, .selfSigned, .revoked,
      .wrongPurpose, .invalidCertificate, .pinMismatch, .clientCertificateRequired,
      .certificateRejected, .noCommonVersion, .noCommonCipher, .noApplicationProtocol, .plainPeer,
      .securePeer, .alert, .damaged, .cutOff,
    ]

    /// The code's name.
    public var description: String { name }
  }

  /// The kind of failure.
  public let code: Code
  /// What happened and what to do about it, for people. Text from the peer is escaped, and cut to
  /// 200 bytes.
  public let detail: String
  /// The certificate that the failure is about, if the peer has shown one.
  public let certificate: PeerCertificate?

  package init(_ code: Code, _ detail: String, certificate: PeerCertificate? = nil) {
    self.code = code
    self.detail = detail
    self.certificate = certificate
  }
}

extension SecurityFailure: CustomStringConvertible {
  /// The detail, and the certificate if there is one.
  public var description: String {
    certificate.map { "\(detail) (\($0))" } ?? detail
  }
}
