// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import COpenSSL
internal import LongLinkCore

/// Why OpenSSL, or the code around it, gave a connection up.
struct TLSFailure {
  let kind: cll_tls_failure_kind
  let code: CInt
  /// OpenSSL's text for the error.
  let text: String?

  init(kind: CInt, code: CInt, text: String?) {
    self.kind = cll_tls_failure_kind(rawValue: UInt32(kind))
    self.code = code
    self.text = text
  }

  /// The side of a connection on which it failed, for error texts.
  struct Place {
    let isServer: Bool
    /// The name that a client verifies.
    let name: String?
    let isHandshake: Bool

    var peer: String { isServer ? "client" : "server" }
  }

  /// Returns the failure with a text for people. `certificate` is the one that caused it.
  func explained(_ place: Place, _ certificate: PeerCertificate?) -> SecurityFailure {
    switch kind {
    case CLL_FAILURE_CERTIFICATE:
      return certificateFailure(place, certificate)
    case CLL_FAILURE_PIN:
      return SecurityFailure(
        .pinMismatch,
        """
        the chain of the \(place.peer)'s certificate is valid and has none of the pinned keys; \
        if its operator has changed the keys, ask for the new pin; if not, an attacker may be on \
        the path
        """, certificate: certificate)
    case CLL_FAILURE_ALERT:
      return alertFailure(place)
    case CLL_FAILURE_PLAIN:
      return place.isServer ? TLSFailure.plainClient : TLSFailure.plainServer
    case CLL_FAILURE_FLOOD:
      return SecurityFailure(
        .damaged, "the \(place.peer) sent too many records without bytes of the application")
    case CLL_FAILURE_LARGE_HELLO:
      return SecurityFailure(
        .damaged, "the hello of the \(place.peer) is larger than any that this server takes: 24 KiB"
      )
    case CLL_FAILURE_CROWDED_HELLO:
      return SecurityFailure(
        .damaged,
        """
        the hello of the \(place.peer) offers more than 64 groups, or 8 keys for them, \
        or names too many authorities
        """)
    case CLL_FAILURE_CHAIN:
      return chainFailure(place)
    case CLL_FAILURE_PROTOCOL_NAME:
      return TLSFailure.applicationProtocol(place)
    default:
      return localFailure(place)
    }
  }

  static let plainClient = SecurityFailure(
    .plainPeer,
    """
    the client does not speak TLS; set its `security`, or let it connect to another port
    """)

  static let plainServer = SecurityFailure(
    .plainPeer,
    "the server does not speak TLS; connect without `security`, or to another port"
  )

  static func applicationProtocol(_ place: Place) -> SecurityFailure {
    SecurityFailure(
      .noApplicationProtocol,
      """
      the \(place.peer) speaks TLS, but not the application protocol longlink/1 (ALPN); \
      it may be a server or a client of something else
      """)
  }

  static func unreadAnswers(_ place: Place) -> SecurityFailure {
    SecurityFailure(
      .damaged, "the \(place.peer) asked for new keys many times and did not read the answers")
  }

  /// The peer ended the transport below without the end that TLS protects.
  static func cutOff(_ place: Place) -> SecurityFailure {
    SecurityFailure(
      .cutOff,
      place.isHandshake
        ? """
        the \(place.peer) ended the connection in the handshake of TLS; \
        its log may say why, or something on the path does not let TLS through
        """
        : "the \(place.peer)'s bytes ended without the end that TLS protects")
  }
}

// MARK: - Certificates

extension TLSFailure {
  /// The failure for certificates that were not decoded, because that might take long.
  private func chainFailure(_ place: Place) -> SecurityFailure {
    let detail =
      switch ChainProblem(rawValue: code) {
      case .long:
        "the \(place.peer) sent more than \(HandshakeBounds.mostCertificates) certificates"
      case .key:
        """
        a certificate of the \(place.peer) has a key that is not used here; \
        use RSA with 8,192 bits at most, P-256, P-384, P-521, Ed25519 or Ed448
        """
      case .compressed:
        "the certificates of the \(place.peer) are compressed, which is not used here"
      default:
        "the certificates of the \(place.peer) are damaged, or have too many names and extensions"
      }
    return SecurityFailure(.invalidCertificate, detail)
  }

  private func certificateFailure(
    _ place: Place, _ certificate: PeerCertificate?
  ) -> SecurityFailure {
    let whose = "a certificate of the \(place.peer)"
    let (failure, detail): (SecurityFailure.Code, String) =
      switch code {
      case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
        (.nameMismatch, nameText(place, certificate))
      case X509_V_ERR_CERT_HAS_EXPIRED:
        (.expired, "\(whose) has expired; renew it, or set the clock of this machine right")
      case X509_V_ERR_CERT_NOT_YET_VALID:
        (.notYetValid, "\(whose) is not valid yet; the clock of this machine may be behind")
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
        X509_V_ERR_CERT_UNTRUSTED:
        (
          .unknownAuthority,
          """
          no authority that this side trusts has issued the certificate of the \(place.peer); \
          add its authority to `roots`, or let the \(place.peer) send its intermediate \
          certificates
          """
        )
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        (
          .selfSigned,
          """
          the \(place.peer)'s certificate is signed by itself and not trusted; \
          add it to `roots` if you know that it is the right one
          """
        )
      case X509_V_ERR_CERT_REVOKED:
        (.revoked, "\(whose) is revoked; the \(place.peer) needs a new one")
      case X509_V_ERR_INVALID_PURPOSE:
        (
          .wrongPurpose,
          """
          \(whose) is not meant for a \(place.peer) of TLS; \
          it needs the extended key usage \(place.isServer ? "clientAuth" : "serverAuth")
          """
        )
      case X509_V_ERR_UNABLE_TO_GET_CRL:
        (
          .invalidCertificate,
          "the issuer of \(whose) has no revocation list; add it, or give no lists"
        )
      case X509_V_ERR_CRL_HAS_EXPIRED:
        (
          .invalidCertificate, "the revocation list for \(whose) has expired; replace its file"
        )
      default:
        (.invalidCertificate, "\(whose) is not valid: \(text ?? "error \(code)")")
      }
    return SecurityFailure(failure, detail, certificate: certificate)
  }

  private func nameText(_ place: Place, _ certificate: PeerCertificate?) -> String {
    let names = (certificate?.names ?? []).prefix(4).map { name in
      switch name {
      case .dns(let text), .address(let text), .uri(let text), .email(let text):
        PeerText.shortened(text)
      }
    }
    let wanted = place.name ?? "this server"
    if certificate?.names.contains(.dns(wanted)) == true {
      return """
        the server's certificate names \(wanted) as a DNS name, not as an IP address; \
        add the address to it, or connect by another name that it has
        """
    }
    let own =
      if !names.isEmpty {
        "is for \(names.joined(separator: ", ")), and not for \(wanted)"
      } else if certificate?.subject.contains("CN=") == true {
        "has only a common name, which is ignored; add \(wanted) to its subject alternative names"
      } else {
        "has no names, so it is not for \(wanted)"
      }
    return """
      the server's certificate \(own); connect by a name that it has, or set `serverName`
      """
  }
}

// MARK: - Alerts and rules

extension TLSFailure {
  private func alertFailure(_ place: Place) -> SecurityFailure {
    let peer = place.peer
    switch code {
    case SSL_AD_CERTIFICATE_REQUIRED:
      return SecurityFailure(
        .clientCertificateRequired,
        "the \(peer) requires a certificate of this side; set `certificate`")
    case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
      SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
      SSL_AD_DECRYPT_ERROR, SSL_AD_ACCESS_DENIED:
      return SecurityFailure(
        .certificateRejected,
        """
        the \(peer) does not accept this side's certificate: \(reason); \
        \(place.isServer ? "its own error" : "its log at the level debug") has the exact reason
        """)
    case SSL_AD_PROTOCOL_VERSION:
      return TLSFailure.version(peer)
    case SSL_AD_HANDSHAKE_FAILURE, SSL_AD_INSUFFICIENT_SECURITY:
      return TLSFailure.cipher(peer)
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return TLSFailure.applicationProtocol(place)
    case SSL_AD_BAD_RECORD_MAC, SSL_AD_RECORD_OVERFLOW, SSL_AD_DECODE_ERROR:
      return SecurityFailure(
        .damaged, "the \(peer) got bytes that this side did not send, or could not read: \(reason)")
    default:
      return SecurityFailure(.alert, "the \(peer) ended the connection with an alert: \(reason)")
    }
  }

  /// The reason in the peer's alert, such as `expired (alert 45)`.
  private var reason: String {
    let name = unsafe SSL_alert_desc_string_long(code).map { unsafe String(cString: $0) }
    return "\(name ?? "unknown") (alert \(code))"
  }

  private static func version(_ peer: String) -> SecurityFailure {
    SecurityFailure(
      .noCommonVersion,
      """
      the \(peer) has no version of TLS in common with this side; update it, or allow TLS 1.2 \
      with `minimumVersion`
      """)
  }

  private static func cipher(_ peer: String) -> SecurityFailure {
    SecurityFailure(
      .noCommonCipher,
      """
      the \(peer) has no cipher, group or signature algorithm in common with this side, \
      or none that its certificate can be used with
      """)
  }

  private func localFailure(_ place: Place) -> SecurityFailure {
    switch code {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return SecurityFailure(
        .clientCertificateRequired,
        "the client has no certificate, and this server requires one; give it one")
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_UNKNOWN_PROTOCOL, SSL_R_VERSION_TOO_LOW,
      SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_WRONG_SSL_VERSION:
      return TLSFailure.version(place.peer)
    case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE,
      SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS,
      SSL_R_NO_SUITABLE_GROUPS, SSL_R_WRONG_CIPHER_RETURNED, SSL_R_UNKNOWN_CIPHER_RETURNED:
      return TLSFailure.cipher(place.peer)
    default:
      return SecurityFailure(
        .damaged,
        """
        the \(place.peer) broke a rule of TLS, or its bytes were changed on the way: \
        \(text ?? "error \(code)")
        """)
    }
  }
}
