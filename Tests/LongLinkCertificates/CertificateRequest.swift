// SPDX-License-Identifier: Apache-2.0

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
