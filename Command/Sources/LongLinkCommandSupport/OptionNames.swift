// SPDX-License-Identifier: Apache-2.0

/// The options of the command for settings of the library.
///
/// The library knows no options. Its texts put the names of settings between backquotes, and a
/// command shows an option in place of a name that it has one for.
package enum OptionNames {
  private static let options = [
    "security": "--tls",
    "roots": "--tls-ca",
    "security.roots": "--tls-ca",
    "serverName": "--tls-server-name",
    "security.serverName": "--tls-server-name",
    "certificate": "--tls-certificate and --tls-key",
    "security.certificate.chain": "--tls-certificate",
    "security.certificate.key": "--tls-key",
    "security.certificates[0]": "--tls-certificate",
    "security.certificates[0].chain": "--tls-certificate",
    "security.certificates[0].key": "--tls-key",
    "security.clientCertificates": "--tls-client-ca",
    "security.pins": "--tls-pin",
    "insecure": "--tls-insecure",
    "authenticate": "--token",
    "identity.credential": "--token",
    "identity.clientID": "--identity",
    "once": "--once",
    "once.retention": "--once-retention",
    "renew()": "--once-restored",
    "identity.client": "--identity",
  ]

  /// Returns a text with options in place of the settings that they set.
  package static func inserted(into text: String) -> String {
    text.replacing(/`([^`\s]+)`/) { match in options[String(match.1)] ?? String(match.0) }
  }
}
