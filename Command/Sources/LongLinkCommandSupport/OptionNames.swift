// SPDX-License-Identifier: Apache-2.0

/// The options that set what the library's errors call by the names of its fields.
package enum OptionNames {
  /// The text of the library, and that of the command; a longer one before its beginning.
  private static let pairs = [
    ("security.certificates[0].chain", "--tls-certificate"),
    ("security.certificates[0].key", "--tls-key"),
    ("security.certificates[0]", "--tls-certificate"),
    ("security.certificate.chain", "--tls-certificate"),
    ("security.certificate.key", "--tls-key"),
    ("security.clientCertificates", "--tls-client-ca"),
    ("security.roots", "--tls-ca"),
    ("security.serverName", "--tls-server-name"),
    ("security.pins", "--tls-pin"),
    ("set `serverName`", "set --tls-server-name"),
    ("set `certificate`", "set --tls-certificate and --tls-key"),
    ("set `security`, or use --tls", "use --tls"),
    ("without --tls or without `security`", "without --tls"),
    ("add its authority to the roots", "add its authority to the file of --tls-ca"),
    ("add it to the roots", "add it to the file of --tls-ca"),
  ]

  /// Returns an error's text with the names of options for those of fields.
  package static func inserted(into text: String) -> String {
    pairs.reduce(text) { text, pair in text.replacing(pair.0, with: pair.1) }
  }
}
