// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver

// How a connection is left by its server, by the application, or because it is not needed.

// MARK: - Goaway

extension ClientConnection {
  /// Handles the server's goaway.
  func leaving(_ goaway: GoAway) {
    let code = ResponseCode(wire: goaway.code)
    link.log(
      .info, "The server is going away",
      [
        "code": "\(goaway.code)", "detail": "\(PeerText(goaway.reason))",
        "accepted": "\(goaway.requestsAccepted)",
      ])
    core.notifyObserver(
      .goaway(
        link.id, code, retryAfter: .milliseconds(Int64(goaway.retryAfter)),
        spread: .milliseconds(Int64(goaway.spread))))
    // The hint of a server that does not drain is not about reconnecting.
    let hint =
      code == .draining
      ? core.configuration.reconnect.hint(
        retryAfter: goaway.retryAfter, spread: goaway.spread, bits: core.bits()) : nil
    let named = code == .draining ? alternatives(in: goaway) : []
    let hints: ClientMachine.Hints = (hint, named.count)
    switch stage {
    case .used:
      awaitsNext = code == .draining && requests.isCurrent(link)
      requests.leaving(
        link, accepted: goaway.requestsAccepted, code: code, reason: goaway.reason,
        acceptsNext: code.isPassing)
      note(loss: .goneAway(code))
      core.tell(.long(.peerLeft(link.id, code, hints)), naming: named)
      core.failIfRefused()
      // A link that was replaced earlier only waits for its last responses.
      core.finishIfDone(link)
    case .tried, .preparing:
      // This is not a refusal of the credential, which the server has accepted. The link finishes
      // the requests of the server.
      if isPreparing { leftUnprepared(goaway) } else { core.counters.trialsFailed += 1 }
      stage = .left
      core.lastFailure = ConnectFailure(of: link, .goneAway(code))
      core.tell(.long(.leftEarly(link.id, hints)), naming: named)
    case .left: break
    case .unwanted: link.close(.left)
    case .opening:
      // The goaway came instead of a welcome, so it explains why the attempt has failed.
      let isRefusal = code.deniesAccess
      core.tell(.long(.turnedAway(link.id, isRefusal: isRefusal, hints)), naming: named)
      link.close(.goneAway(code))
      guard isRefusal else { return }
      // The link reports its end later; callers that wait are told now.
      core.lastFailure = failure(of: .goneAway(code))
      core.connector.refused(code)
    }
  }

  /// Returns the valid servers that a goaway names; none if the policy does not follow them.
  private func alternatives(in goaway: GoAway) -> [Endpoint] {
    let names = goaway.alternatives
    guard core.configuration.reconnect.followsAlternatives else {
      core.counters.alternativesIgnored += UInt64(names.count)
      return []
    }
    let found = names.prefix(Wire.alternativesLimit).compactMap(Endpoint.init(alternative:))
    if found.count < names.count {
      core.counters.alternativesIgnored += UInt64(names.count - found.count)
      core.log.log(.warning, "Ignored servers named in a goaway", at: core.loop.now) {
        ["named": "\(names.count)", "used": "\(found.count)"]
      }
    }
    return found
  }
}

// MARK: - Connections that are not used

extension ClientConnection {
  /// Whether the client has done with the connection, and the server has not closed it yet.
  var awaitsEnd: Bool {
    if case .unwanted = stage { true } else { link.connection.isLeaving }
  }

  /// Drops a connection that is not used yet, because it is not needed or has taken too long.
  ///
  /// Its server may have accepted it, and then takes it for the client's current one: what the
  /// server has sent over it is still read.
  func abandon(_ reason: CloseReason) {
    let isLate = reason == .handshakeTimeout
    switch stage {
    case .opening where !isLate && link.isConnected && core.goesOn:
      stage = .unwanted
      core.closeOldestLeft()
    case .unwanted where link.isOpen, .tried where link.isOpen, .preparing where link.isOpen:
      giveUp(because: isLate ? "`prepare` did not return within `timeouts.connect`" : nil)
    case .opening, .unwanted, .tried, .preparing, .left, .used: link.close(reason)
    }
  }

  /// Leaves an open connection that is not used yet. `failure` says why it cannot be used; nil if
  /// it is not needed.
  func giveUp(because failure: String?) {
    cancelPreparation()
    stage = .left
    if let failure {
      core.counters.failedAttempts += 1
      core.connector.failed(ConnectFailure("prepareFailed", detail: failure, address: link.peer))
    } else {
      core.counters.abandonedAttempts += 1
    }
    core.finishIfDone(link)
  }

  /// Closes the connection for a handler, or for `prepare`. If it was not used yet, it has failed.
  func closedByApplication() {
    switch stage {
    case .preparing, .tried:
      unusable = ConnectFailure(
        .closedHere, detail: "the application has closed the connection", address: link.peer)
      link.close(.left)
    case .opening, .unwanted, .left, .used: link.shutDown()
    }
  }
}
