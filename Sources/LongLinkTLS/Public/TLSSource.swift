// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// Where certificates, private keys, revocation lists (all as PEM) or ticket keys (raw bytes) come
/// from.
public enum TLSSource: Hashable, Sendable {
  /// A file of at most 4 MiB, by its path. It is read again after it has changed.
  case file(String)
  /// Bytes in memory, which do not change.
  case bytes([UInt8])

  /// The path of a file.
  var path: String? {
    if case .file(let path) = self { path } else { nil }
  }

  /// The source's name in errors: its path, or `the given bytes`.
  var text: String { path ?? "the given bytes" }
}

/// The bytes may be keys, so a description states only their number.
extension TLSSource: CustomStringConvertible, CustomReflectable {
  /// The path of a file, or the number of the bytes.
  public var description: String {
    switch self {
    case .file(let path): path
    case .bytes(let bytes): "\(bytes.count) bytes"
    }
  }

  /// A mirror that shows only the description.
  public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}

/// A certificate of this side, and its private key.
public struct TLSIdentity: Hashable, Sendable {
  /// The certificate, and after it those of intermediate authorities, each signed by the next.
  public var chain: TLSSource
  /// The private key. It may be in the same file as the chain.
  public var key: TLSSource
  /// The password that decrypts the key. Default nil: the key is not encrypted.
  public var password: String?

  /// Makes an identity from the sources of a chain and its key.
  public init(chain: TLSSource, key: TLSSource, password: String? = nil) {
    self.chain = chain
    self.key = key
    self.password = password
  }

  /// Makes an identity from two files, by their paths.
  public init(chainFile: String, keyFile: String, password: String? = nil) {
    self.init(chain: .file(chainFile), key: .file(keyFile), password: password)
  }
}

extension TLSIdentity: CustomStringConvertible, CustomReflectable {
  /// The sources of the chain and the key, and whether there is a password.
  public var description: String {
    "chain \(chain), key \(key)\(password == nil ? "" : ", with a password")"
  }

  /// A mirror that shows only the description.
  public var customMirror: Mirror { Mirror(self, children: ["identity": description]) }
}

/// The authorities that this side trusts.
public struct TLSRoots: Hashable, Sendable {
  /// Whether this side trusts the authorities that the system trusts. Default false.
  public var usesSystem: Bool
  /// Certificates of further authorities to trust. A certificate that is not an authority's can be
  /// trusted in this way, too.
  public var sources: [TLSSource]

  /// Makes a list of authorities. Without arguments it trusts none, and a configuration with it is
  /// refused.
  public init(usesSystem: Bool = false, sources: [TLSSource] = []) {
    self.usesSystem = usesSystem
    self.sources = sources
  }

  /// Trusts the authorities that the system trusts.
  public static let system = TLSRoots(usesSystem: true)

  /// Trusts the authorities in these sources, and no others.
  public static func only(_ sources: TLSSource...) -> TLSRoots {
    TLSRoots(sources: sources)
  }

  /// Trusts the authorities that the system trusts, and those in these sources.
  public static func systemAnd(_ sources: TLSSource...) -> TLSRoots {
    TLSRoots(usesSystem: true, sources: sources)
  }
}

/// A version of TLS, as the oldest one that a client or server speaks.
public enum TLSVersion: Hashable, Sendable {
  /// TLS 1.2, only with suites that have forward secrecy and authenticated encryption. TLS 1.3 is
  /// preferred.
  case tls12
  /// TLS 1.3.
  case tls13
}

/// Pinned public keys, one of which must be in the verified chain of a server.
public struct TLSPins: Sendable {
  /// The SHA-256 hashes of the keys (SubjectPublicKeyInfo), in base64, as in RFC 7469. At least two
  /// different ones, so that one key can be lost.
  public var hashes: [String]
  /// A function that is called if no key of a server's chain is pinned. Default nil: the connection
  /// then fails, with the security failure `pinMismatch`.
  ///
  /// With a function, the connection goes on, and later ones do not resume it. The function is
  /// called on the connection's loop, which it must not block.
  public var audit: (@Sendable (SecurityFailure) -> Void)?
  /// When the pins expire, in seconds since 1970: from then on only the chain is verified, so that
  /// a program that is not updated still connects. Default nil: never.
  public var end: Int64?

  /// Makes pins from two or more different hashes. `ClientSecurity.tls` throws
  /// `invalidConfiguration` if there are fewer, or if one is malformed.
  public init(
    _ hashes: [String], end: Int64? = nil, audit: (@Sendable (SecurityFailure) -> Void)? = nil
  ) {
    self.hashes = hashes
    self.end = end
    self.audit = audit
  }
}
