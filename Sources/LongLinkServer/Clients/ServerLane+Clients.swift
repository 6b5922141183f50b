// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

extension ServerLane {
  /// The time in which a client without a connection may come back before `onDisconnect` is called.
  struct Absence {
    let client: ServerClient
    let number: UInt64
    /// The client's last connection.
    let peer: Peer
    /// The timer that fires when the client has been away for `identity.linger`.
    var timer: LoopTimer?
  }

  /// Ends the oldest connection of a client that has too many.
  func retire(_ connection: ServerConnection) {
    let notice = DrainNotice(
      code: .conflict, reason: "the client has \(ServerClient.mostConnections) newer connections",
      as: .limit, configuration, spread: .zero, retryAfter: .zero, alternatives: [])
    connection.drain(within: configuration.identity.credentialGrace.clampedNanoseconds, notice) {}
  }

  /// Tells the application that a connection has ended, and also that its client has left if this
  /// was its last connection.
  func left(_ connection: ServerConnection) {
    hooks.connectionEnded?(connection.peer)
    guard let client = connection.client else {
      shared.clients.otherLeft()
      hooks.disconnect?(connection.peer)
      return
    }
    client.leave(connection.peer)
    guard let number = client.ended() else { return }
    takeChangedLimits()
    var absence = Absence(client: client, number: number, peer: connection.peer)
    let linger = configuration.identity.linger.clampedNanoseconds
    guard linger > 0, !isDraining,
      shared.clients.awaits(client, since: number, most: configuration.limits.maxConnections)
    else { return end(absence) }
    absence.timer = loop.schedule(at: loop.now + linger, self, token: client.id)
    // An earlier absence, from which the client has come back, is over.
    let earlier = absences.updateValue(absence, forKey: client.id)
    if let timer = earlier?.timer { loop.cancel(timer) }
  }

  /// Tells the application that a client has left, unless the client has come back.
  private func end(_ absence: Absence) {
    guard shared.clients.forget(absence.client, since: absence.number) else { return }
    hooks.disconnect?(absence.peer)
  }

  /// Stops waiting for absent clients, which have then left.
  func endAbsences() {
    for id in absences.keys.sorted() {
      guard let absence = absences.removeValue(forKey: id) else { continue }
      if let timer = absence.timer { loop.cancel(timer) }
      end(absence)
    }
  }
}

/// The timers of a lane are those of absences. A token is the client's number.
extension ServerLane: TimerHandler {
  func timerFired(token: UInt64) {
    if let absence = absences.removeValue(forKey: token) { end(absence) }
  }
}
