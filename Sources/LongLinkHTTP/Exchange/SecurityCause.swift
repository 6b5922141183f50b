// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import NIOSSL

/// Translates TLS errors of swift-nio-ssl to `SecurityFailure`.
///
/// BoringSSL only tells that a chain is not valid, not why: a certificate that has expired, one
/// that is not valid yet, and one of an unknown authority get the same code here.
enum SecurityCause {
  /// The security failure behind an error; nil if it has another cause.
  static func failure(of cause: any Error) -> SecurityFailure? {
    switch cause {
    case let cause as NIOSSLError: handlerFailure(cause)
    case let cause as BoringSSLError: libraryFailure(cause)
    case let cause as NIOSSLExtraError
    where cause == .failedToValidateHostname || cause == .serverHostnameImpossibleToMatch:
      SecurityFailure(
        .nameMismatch,
        "the server's certificate is not for the host of the URL; use a name that it has")
    default: nil
    }
  }

  private static func handlerFailure(_ cause: NIOSSLError) -> SecurityFailure? {
    switch cause {
    case .handshakeFailed(let inner): libraryFailure(inner)
    case .noCertificateToValidate:
      SecurityFailure(.invalidCertificate, "the server has shown no certificate; give it one")
    case .unableToValidateCertificate: invalidChain
    case .uncleanShutdown: cutOff
    default: nil
    }
  }

  private static func libraryFailure(_ cause: BoringSSLError) -> SecurityFailure {
    switch cause {
    case .sslError(let errors), .unknownError(let errors):
      // The first error is the cause of the others.
      errors.first.map { failure(named: CauseText.reason(of: "\($0)")) } ?? damaged("no reason")
    case .zeroReturn, .syscallError: cutInHandshake
    default: damaged("\(cause)")
    }
  }

  /// The failure for a reason as BoringSSL names it.
  static func failure(named reason: String) -> SecurityFailure {
    switch reason {
    case "EOF during handshake": cutInHandshake
    case "CERTIFICATE_VERIFY_FAILED": invalidChain
    case "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST":
      SecurityFailure(.plainPeer, "the server does not speak TLS; use http:// or another port")
    case "TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "UNKNOWN_PROTOCOL",
      "WRONG_SSL_VERSION", "UNKNOWN_SSL_VERSION":
      SecurityFailure(
        .noCommonVersion, "the server has no version of TLS in common with this side; update it")
    case _ where ciphers.contains(reason):
      SecurityFailure(
        .noCommonCipher,
        """
        the server has no cipher, group or signature algorithm in common with this side, \
        or none that its certificate can be used with
        """)
    case "TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "INVALID_ALPN_PROTOCOL":
      SecurityFailure(
        .noApplicationProtocol, "the server speaks TLS and offers no version of HTTP (ALPN)")
    case _ where reason.contains("_ALERT_"): alert(reason)
    default: damaged(reason)
    }
  }

  /// The failure for an alert of the server.
  private static func alert(_ reason: String) -> SecurityFailure {
    switch reason {
    case "TLSV1_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_NO_CERTIFICATE":
      SecurityFailure(
        .clientCertificateRequired,
        "the server requires a certificate of this side; set `tls.certificate`")
    case _ where rejections.contains(reason):
      SecurityFailure(
        .certificateRejected, "the server does not accept this side's certificate: \(reason)")
    case "SSLV3_ALERT_BAD_RECORD_MAC", "TLSV1_ALERT_RECORD_OVERFLOW", "TLSV1_ALERT_DECODE_ERROR":
      SecurityFailure(
        .damaged,
        "the server got bytes that this side did not send, or could not read: \(reason)")
    default:
      SecurityFailure(
        .alert, "the server ended the connection with an alert: \(PeerText(reason))")
    }
  }

  /// The reasons of alerts about this side's certificate.
  private static let rejections: Set<String> = [
    "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_REVOKED", "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_UNKNOWN_CA", "TLSV1_ALERT_ACCESS_DENIED",
    "TLSV1_ALERT_DECRYPT_ERROR",
  ]

  private static let ciphers: Set<String> = [
    "SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_INSUFFICIENT_SECURITY", "NO_SHARED_CIPHER",
    "NO_SHARED_GROUP", "NO_COMMON_SIGNATURE_ALGORITHMS", "WRONG_CIPHER_RETURNED",
    "UNKNOWN_CIPHER_RETURNED", "UNSUPPORTED_CIPHER", "UNSUPPORTED_ELLIPTIC_CURVE", "WRONG_CURVE",
    "WRONG_SIGNATURE_TYPE",
  ]

  private static let invalidChain = SecurityFailure(
    .invalidCertificate,
    """
    the server's certificate is not valid: no authority that this side trusts has issued it, \
    or it has expired, or is not valid yet (CERTIFICATE_VERIFY_FAILED); look at it with \
    `openssl s_client`, and renew it, add its authority to `tls.additionalRoots`, or set the \
    clock of this machine right
    """)

  private static let cutInHandshake = SecurityFailure(
    .cutOff,
    """
    the server ended the connection in the handshake of TLS; \
    its log may say why, or something on the path does not let TLS through
    """)

  private static let cutOff = SecurityFailure(
    .cutOff, "the server's bytes ended without the end that TLS protects")

  private static func damaged(_ reason: String) -> SecurityFailure {
    SecurityFailure(
      .damaged,
      """
      the server broke a rule of TLS, or its bytes were changed on the way: \(PeerText(reason))
      """)
  }
}

extension SecurityFailure.Code {
  /// Whether the failure is about the client's identity. In TLS 1.3 the server reports that so late
  /// that the client's first bytes may have left.
  var isAboutThisSide: Bool {
    self == .clientCertificateRequired || self == .certificateRejected
  }
}
#endif
