// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkDriver
internal import LongLinkTransport

/// What a context is built of, for a client or a server.
struct TLSPlan: Sendable {
  var isServer = false
  var allowsOldVersion = false
  var verifies = true
  var clients = CLL_CLIENTS_NONE
  var roots: TLSRoots?
  /// The configuration's field with the roots, for errors.
  var rootsField = "security.roots"
  var identities: [(field: String, identity: TLSIdentity)] = []
  var revocationLists: [TLSSource] = []
  var pins: (hashes: [[UInt8]], audits: Bool, end: Int64)?
  /// How long a ticket is valid, in seconds.
  var ticketLifetime: Int64 = 7 * 86_400
  /// How long after a full handshake its session can be resumed, in seconds, also over several
  /// connections.
  var sessionLifetime: Int64 = 7 * 86_400

  /// All sources, each with its field of the configuration.
  var sources: [(field: String, source: TLSSource)] {
    var sources = (roots?.sources ?? []).map { (field: rootsField, source: $0) }
    for (field, identity) in identities {
      sources.append(("\(field).chain", identity.chain))
      sources.append(("\(field).key", identity.key))
    }
    return sources + revocationLists.map { ("security.revocationLists", $0) }
  }

  /// Builds a context from the files that were read.
  func context(_ files: TLSFiles, keys: TLSTicketKeys? = nil) throws(LongLinkError) -> TLSContext {
    let options = cll_tls_options(
      is_server: isServer, allows_tls12: allowsOldVersion, verifies: verifies,
      clients: CInt(clients.rawValue), ticket_lifetime: ticketLifetime,
      session_lifetime: sessionLifetime)
    let context = try TLSPlan.naming("security", nil) { () throws(TLSContext.Problem) in
      try TLSContext(options, keys: keys)
    }
    if let roots {
      if roots.usesSystem {
        try TLSPlan.naming(rootsField, nil) { () throws(TLSContext.Problem) in
          try context.addSystemRoots()
        }
      }
      for source in roots.sources {
        try TLSPlan.naming(rootsField, source) { () throws(TLSContext.Problem) in
          try context.addRoots(files.bytes(of: source))
        }
      }
    }
    for source in revocationLists {
      try TLSPlan.naming("security.revocationLists", source) { () throws(TLSContext.Problem) in
        try context.addRevocations(files.bytes(of: source))
      }
    }
    for (field, identity) in identities { try add(identity, field, files, to: context) }
    if let pins { context.setPins(pins.hashes, audits: pins.audits, end: pins.end) }
    if isServer { context.setScope(scope(files)) }
    return context
  }

  private func add(
    _ identity: TLSIdentity, _ field: String, _ files: TLSFiles, to context: TLSContext
  ) throws(LongLinkError) {
    do throws(TLSContext.Problem) {
      try context.addIdentity(
        chain: files.bytes(of: identity.chain), key: files.bytes(of: identity.key),
        password: identity.password)
    } catch {
      let source = error.isOfKey ? identity.key : identity.chain
      throw .configuration(
        "\(field).\(error.isOfKey ? "key" : "chain")", "\(source.text): \(error.text)")
    }
  }

  /// The scope of tickets, a hash of the rules: tickets of clients that were verified by other
  /// rules are not accepted.
  private func scope(_ files: TLSFiles) -> [UInt8] {
    var rules = [UInt8(clients.rawValue), roots?.usesSystem == true ? 1 : 0]
    for source in (roots?.sources ?? []) + revocationLists {
      rules += TLSFiles.hash(files.bytes(of: source))
    }
    return TLSFiles.hash(rules)
  }

  private static func naming<Result>(
    _ field: String, _ source: TLSSource?, _ body: () throws(TLSContext.Problem) -> Result
  ) throws(LongLinkError) -> Result {
    do throws(TLSContext.Problem) {
      return try body()
    } catch {
      throw .configuration(field, (source.map { "\($0.text): " } ?? "") + error.text)
    }
  }
}
