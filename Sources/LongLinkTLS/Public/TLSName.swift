// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport

/// The name, or the address, that a server's certificate has to have.
struct TLSName: Sendable {
  /// A name without the dot of the root, or an address without brackets and zone.
  let text: String
  let isAddress: Bool

  /// Reads a name or an address; nil if `host` is neither. OpenSSL would verify nothing for an
  /// empty name, and accept any subdomain for a name that begins with a dot.
  init?(_ host: String) {
    if let address = SocketAddress(literal: host, port: 0) {
      let text = "\(address)"
      // The text ends with a colon and the port; an IPv6 address is in brackets.
      var bare = text[..<(text.lastIndex(of: ":") ?? text.endIndex)]
      if bare.hasPrefix("[") { bare = bare.dropFirst().dropLast() }
      self.text = String(bare.prefix { $0 != "%" })
      isAddress = true
      return
    }
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard name.utf8.count <= 253, labels.allSatisfy(TLSName.isLabel) else { return nil }
    text = name
    isAddress = false
  }

  private static func isLabel(_ label: Substring.UTF8View) -> Bool {
    (1...63).contains(label.count) && label.allSatisfy { $0 > 32 && $0 < 127 }
  }
}
