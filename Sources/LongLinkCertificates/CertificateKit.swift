// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkCertificates

/// A certificate and its key, as PEM.
package struct CertificatePair: Hashable, Sendable {
  /// The certificate; of one that an intermediate authority has signed, with its chain.
  package var certificate: [UInt8]
  /// The private key.
  package var key: [UInt8]

  /// Makes a pair of PEM bytes.
  package init(certificate: [UInt8], key: [UInt8]) {
    self.certificate = certificate
    self.key = key
  }
}

/// The contents of a certificate that is to be made.
package struct CertificateRequest: Sendable {
  /// The kind of a key.
  package enum KeyKind: Hashable, Sendable {
    /// Ed25519, whose signatures all have the same size.
    case ed25519
    /// ECDSA over P-256.
    case p256
    /// RSA with 2,048 bits.
    case rsa
  }

  /// The purpose of a certificate.
  package enum Purpose: String, Hashable, Sendable {
    /// Servers of TLS.
    case server = "serverAuth"
    /// Clients of TLS.
    case client = "clientAuth"
    /// Mail, which is neither a server nor a client of TLS.
    case mail = "emailProtection"
  }

  /// The common name. Nobody verifies it.
  package var name: String
  /// The subject alternative names, as `DNS:localhost`, `IP:127.0.0.1`, `URI:…`, `email:…`.
  package var names: [String]
  /// The purpose of the certificate; nil for every purpose.
  package var purpose: Purpose?
  /// Whether the certificate may sign others.
  package var isAuthority: Bool
  /// The serial number.
  package var serial: UInt64
  /// When the certificate becomes valid and when it expires, in seconds since 1970.
  package var validity: Range<Int64>
  /// The kind of the certificate's key. Default: Ed25519.
  package var keyKind: KeyKind
  /// The password that encrypts the key. Default nil: the key is not encrypted.
  package var password: String?

  /// Makes a request.
  package init(
    name: String, names: [String] = [], purpose: Purpose? = nil, isAuthority: Bool = false,
    serial: UInt64 = 1, validity: Range<Int64>, keyKind: KeyKind = .ed25519,
    password: String? = nil
  ) {
    self.name = name
    self.names = names
    self.purpose = purpose
    self.isAuthority = isAuthority
    self.serial = serial
    self.validity = validity
    self.keyKind = keyKind
    self.password = password
  }
}

/// Makes keys and certificates for tests and trials. Nothing that it makes should guard anything.
package enum CertificateKit {
  /// Makes a key and a certificate, signed by `issuer`, or by itself if `issuer` is nil.
  ///
  /// Traps if the request is impossible.
  package static func make(
    _ request: CertificateRequest, issuer: CertificatePair? = nil
  ) -> CertificatePair {
    let kind =
      switch request.keyKind {
      case .ed25519: CLL_KEY_ED25519
      case .p256: CLL_KEY_P256
      case .rsa: CLL_KEY_RSA
      }
    let key = unsafe PEM(cll_make_key(CInt(kind.rawValue)))
    let stored = request.password.map { password in
      unsafe key.withPEM { unsafe PEM(cll_encrypt_key($0, password)).bytes }
    }
    let names = request.names.joined(separator: ",")
    let certificate = unsafe request.name.withCString { name in
      unsafe names.withCString { names in
        unsafe (request.purpose?.rawValue ?? "").withCString { usage in
          var wanted = unsafe cll_certificate_request(
            name: name, names: request.names.isEmpty ? nil : names,
            usage: request.purpose == nil ? nil : usage,
            is_authority: request.isAuthority, serial: request.serial,
            not_before: request.validity.lowerBound, not_after: request.validity.upperBound)
          return unsafe key.withPEM { key in
            unsafe PEM(issuer?.certificate ?? []).withPEM { issuerCertificate in
              unsafe PEM(issuer?.key ?? []).withPEM { issuerKey in
                unsafe PEM(
                  cll_make_certificate(&wanted, key, issuerCertificate, issuerKey))
              }
            }
          }
        }
      }
    }
    return CertificatePair(certificate: certificate.bytes, key: stored ?? key.bytes)
  }

  /// Makes a list of serials that an authority has revoked, as PEM.
  package static func revocations(
    of serials: [UInt64], by issuer: CertificatePair, validity: Range<Int64>
  ) -> [UInt8] {
    let list = unsafe PEM(issuer.certificate).withPEM { certificate in
      unsafe PEM(issuer.key).withPEM { key in
        unsafe serials.withUnsafeBufferPointer { serials in
          unsafe PEM(
            cll_make_list(
              certificate, key, serials.baseAddress, serials.count, validity.lowerBound,
              validity.upperBound))
        }
      }
    }
    return list.bytes
  }
}
