// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// What the client proves its identity with, and what happens if that is not accepted.
extension ClientCore {
  /// What a round of connection attempts needs before it can begin.
  struct RoundNeeds {
    var round: UInt32 = 0
    /// The refusals of credentials before it.
    var refusalsBefore: UInt64 = 0
    /// The number of addresses; nil while they are looked up.
    var addresses: Int?
    /// Nil while the application is asked.
    var credential: [UInt8]?
  }

  /// Calls `completion` with the credential: at once if none is configured.
  func withCredential(_ completion: @escaping CredentialSource.Completion) {
    if let credentials { credentials.ask(completion) } else { completion(.success([])) }
  }

  /// Begins what a round needs.
  func prepareRound(_ round: UInt32) {
    needs = RoundNeeds(round: round, refusalsBefore: refusals.count)
    let bound = LoopBound(self, on: loop)
    withCredential { result in
      let core = bound.value
      // The round may have ended meanwhile: the client was suspended, say.
      guard core.machine.isResolving(round) else { return }
      switch result {
      case .success(let credential):
        core.needs.credential = credential
        core.beginRoundIfReady()
      case .failure(let failure):
        core.lastFailure = failure
        core.machine.noCredential(round: round, at: core.loop.now, bits: core.bits)
      }
      if core.credentials != nil { core.perform() }
    }
  }

  /// Notes the number of addresses of a round.
  func foundAddresses(_ count: Int, round: UInt32) {
    guard round == needs.round else { return }
    needs.addresses = count
    beginRoundIfReady()
  }

  private func beginRoundIfReady() {
    guard let count = needs.addresses, count == 0 || needs.credential != nil else { return }
    let round = needs.round
    machine.resolved(round: round, addresses: count, at: loop.now, bits: bits)
  }

  /// Why the credential must not be sent to an address; nil if it may be.
  func objection(toCredentialFor address: SocketAddress) -> ConnectFailure? {
    guard needs.credential?.isEmpty == false, configuration.security == nil,
      !configuration.sendsCredentialUnencrypted, !address.isLocal
    else { return nil }
    return .unencryptedCredential(for: address, way: nil)
  }

  /// Notes that a server did not accept the credential of the current round. Stops the client if
  /// that is final.
  func credentialRefused(_ code: ResponseCode) {
    refusals.refused(
      needs.credential ?? [], code, since: needs.refusalsBefore, hasOther: machine.isReplacing)
    guard refusals.finalCode != nil else { return }
    machine.stop(at: loop.now)
    // Requests may go over short links, as after a round that has failed.
    shortLinks?.machine.roundFailed()
    perform()
    failWaiting(after: .refused, resumesConnect: true, notConnected)
  }

  /// Makes the long link again if it was given up because servers refused another credential.
  func restart(with credential: [UInt8]) {
    guard machine.state == .stopped, refusals.allows(credential) else { return }
    start(again: true)
  }
}

// MARK: - Short links

extension ClientCore {
  /// Gives up a short link whose credential is refused, with the requests that wait for one: the
  /// answer would be the same. A long link that stands a trial takes them instead.
  func notOpened(_ id: WayMachine.ID) {
    guard let shortLinks else { return }
    if let failure = shortLinks.refusal { lastFailure = failure }
    if !endTrial() { failWaiting(after: .refusedOverShortLinks, notConnected) }
    shortLinks.machine.ended(id, .unused, at: loop.now, bits: bits)
  }

  /// Notes that a server did not accept the credential of a short link.
  func credentialRefused(_ goaway: GoAway, on connection: ShortConnection) {
    guard let shortLinks else { return }
    let code = ResponseCode(wire: goaway.code)
    let failure = ConnectFailure(
      .goneAway(code),
      detail: """
        \(shortLinks.name(of: connection.way)): \
        \(ConnectFailure.text(ofRefusal: code, of: connection.credential)): \
        \(PeerText(goaway.reason))
        """, address: connection.link.peer)
    lastFailure = failure
    let isFirst = shortLinks.refusals.refused(
      connection.credential, code, since: connection.refusalsBefore)
    if isFirst { shortLinks.refusal = failure }
    publishState()
  }

  /// Notes that a server has taken a request with a credential.
  func credentialAccepted(on connection: ShortConnection) {
    if shortLinks?.refusals.accepted(connection.credential) == true { publishState() }
  }
}

extension ConnectFailure {
  /// What a goaway in place of a welcome says about a client that showed a credential; an empty one
  /// is none.
  static func text(ofRefusal code: ResponseCode, of credential: [UInt8]) -> String {
    switch code {
    case .unauthenticated:
      credential.isEmpty
        ? "the server did not accept this client, which has no `credential` (401)"
        : "the server did not accept the credential (401)"
    case .forbidden: "the server does not allow this client to connect (403)"
    case .draining: "the server is draining, and takes no new clients (503)"
    default: CloseReason.text(ofGoaway: code, from: "server")
    }
  }

  static func unencryptedCredential(for address: SocketAddress?, way: String?) -> ConnectFailure {
    ConnectFailure(
      "credentialUnencrypted",
      detail: """
        \(way.map { "\($0): " } ?? "")the credential would be sent without encryption: use \
        \(way == nil ? "`security`" : "https"), or allow it with `sendsCredentialUnencrypted`
        """, address: address)
  }
}

extension SocketAddress {
  /// Whether bytes to this address stay on this machine.
  var isLocal: Bool { family == .unix || group?.isLoopback ?? false }
}
