// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore
internal import LongLinkDriver

extension TLSClientConfiguration {
  /// Checks the configuration without reading its files.
  func plan() throws(LongLinkError) -> TLSPlan {
    var plan = TLSPlan()
    plan.allowsOldVersion = minimumVersion == .tls12
    plan.verifies = verification == .full
    plan.revocationLists = revocationLists
    if let certificate { plan.identities = [("security.certificate", certificate)] }
    if verification == .full {
      plan.roots = roots
      guard roots.usesSystem || !roots.sources.isEmpty else {
        throw .configuration("security.roots", "there is no authority in it to trust")
      }
    } else if pins != nil {
      throw .configuration(
        "security.pins", "pins are keys of verified chains, and `insecure` verifies none")
    }
    if let serverName, TLSName(serverName) == nil {
      throw .configuration(
        "security.serverName",
        """
        "\(PeerText(serverName))" is no name or address; a name has labels of 1 to 63 \
        characters of ASCII with single dots between them, and 253 characters at most
        """)
    }
    if let pins { plan.pins = try pins.checked() }
    return plan
  }
}

extension TLSServerConfiguration {
  /// Checks the configuration without reading its files.
  func plan() throws(LongLinkError) -> TLSPlan {
    var plan = TLSPlan()
    plan.isServer = true
    plan.allowsOldVersion = minimumVersion == .tls12
    plan.revocationLists = revocationLists
    plan.rootsField = "security.clientCertificates"
    guard !certificates.isEmpty else {
      throw .configuration("security.certificates", "a server needs a certificate")
    }
    plan.identities = certificates.enumerated().map {
      ("security.certificates[\($0.offset)]", $0.element)
    }
    switch clientCertificates {
    case .none: break
    case .requested(let roots): (plan.roots, plan.clients) = (roots, CLL_CLIENTS_REQUESTED)
    case .required(let roots): (plan.roots, plan.clients) = (roots, CLL_CLIENTS_REQUIRED)
    }
    if let roots = plan.roots, !roots.usesSystem, roots.sources.isEmpty {
      throw .configuration(plan.rootsField, "there is no authority in it to trust")
    }
    if plan.roots == nil, !revocationLists.isEmpty {
      throw .configuration(
        "security.revocationLists", "they are for clients' certificates, which are not asked for")
    }
    if case .rotating(let interval) = tickets {
      guard interval >= .seconds(60), interval <= .seconds(3 * 86_400) else {
        throw .configuration("security.tickets", "the interval is 1 minute to 3 days")
      }
      plan.ticketLifetime = interval.components.seconds
      plan.sessionLifetime = 2 * plan.ticketLifetime
    } else {
      plan.ticketLifetime = 86_400
      plan.sessionLifetime = 86_400
    }
    return plan
  }
}

extension TLSPins {
  /// Checks the pins, and returns their hashes as bytes.
  fileprivate func checked() throws(LongLinkError) -> (
    hashes: [[UInt8]], audits: Bool, end: Int64
  ) {
    var found: [[UInt8]] = []
    for text in hashes {
      guard let hash = Base64.decode(text), hash.count == 32 else {
        throw .configuration(
          "security.pins", "\(PeerText(text)) is not the base64 of a SHA-256 hash of 32 bytes")
      }
      if !found.contains(hash) { found.append(hash) }
    }
    guard found.count >= 2 else {
      throw .configuration(
        "security.pins",
        "two different hashes are needed at least, so that the server can lose one key")
    }
    return (found, audit != nil, end ?? .max)
  }
}

/// Base64 decoding (RFC 4648, section 4).
enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Returns the bytes; nil if the text is not base64 with its padding.
  static func decode(_ text: String) -> [UInt8]? {
    var symbols = Array(text.utf8)
    guard symbols.count % 4 == 0 else { return nil }
    let padding = symbols.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2 else { return nil }
    symbols.removeLast(padding)
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for symbol in symbols {
      guard let value = alphabet.firstIndex(of: symbol) else { return nil }
      buffer = buffer << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
      }
    }
    // The unused bits at the end must be zero.
    return buffer & (1 << UInt32(bits) - 1) == 0 ? bytes : nil
  }
}
