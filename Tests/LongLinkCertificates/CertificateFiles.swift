// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// The files of a trial: an authority, a server and a client.
package struct CertificateFiles: Sendable {
  /// The authority, which issues both others.
  package let authority: CertificatePair
  /// The server's certificate and key.
  package let server: CertificatePair
  /// The client's certificate and key.
  package let client: CertificatePair

  /// Makes the certificates and keys. `serverNames` and `clientNames` are as
  /// `CertificateRequest.names`.
  ///
  /// `serial` is the authority's number; those of the others follow. The authority's name has its
  /// last 32 bits in hexadecimal, so that those of two trials have different names.
  package init(
    serverNames: [String] = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"],
    clientNames: [String] = ["DNS:client"], serial: UInt64, validity: Range<Int64>,
    keyKind: CertificateRequest.KeyKind = .ed25519
  ) {
    let digits = String(UInt32(truncatingIfNeeded: serial), radix: 16)
    let number = String(repeating: "0", count: 8 - digits.count) + digits
    authority = CertificateKit.make(
      CertificateRequest(
        name: "LongLink trial authority \(number)", isAuthority: true, serial: serial,
        validity: validity,
        keyKind: keyKind))
    server = CertificateKit.make(
      CertificateRequest(
        name: "LongLink trial server", names: serverNames, purpose: .server, serial: serial &+ 1,
        validity: validity, keyKind: keyKind), issuer: authority)
    client = CertificateKit.make(
      CertificateRequest(
        name: "LongLink trial client", names: clientNames, purpose: .client, serial: serial &+ 2,
        validity: validity, keyKind: keyKind), issuer: authority)
  }

  /// Writes `ca.pem`, `ca-key.pem`, `server.pem`, `server-key.pem`, `client.pem` and
  /// `client-key.pem` into a directory that exists. Only the owner can read them.
  ///
  /// Files that are there are replaced, each in one step. It blocks. Throws a text that names the
  /// file and the reason.
  package func write(to directory: String) throws(CertificateFileError) {
    let pairs = [("ca", authority), ("server", server), ("client", client)]
    for (name, pair) in pairs {
      do throws(FileError) {
        let key = SmallFile("\(directory)/\(name)-key.pem")
        try key.replace(with: pair.key, suffix: "new")
        try SmallFile("\(directory)/\(name).pem").replace(with: pair.certificate, suffix: "new")
      } catch {
        throw CertificateFileError(description: "\(error)")
      }
    }
  }
}

/// A file that could not be written.
package struct CertificateFileError: Error, Sendable, CustomStringConvertible {
  /// The file and the reason.
  package let description: String
}
