// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

extension ServerLane {
  /// A client that has no connection, but may come back before the application is told.
  struct Absence {
    let client: ServerClient
    let number: UInt64
    /// The client's last connection.
    let peer: Peer
    /// When the client has been away for long enough.
    var timer: LoopTimer?
  }

  /// Lets the oldest connection of a client end that has too many.
  func retire(_ connection: ServerConnection) {
    let notice = DrainNotice(
      code: .conflict, reason: "the client has \(ServerClient.mostConnections) newer connections",
      configuration, spread: .zero, retryAfter: .zero, alternatives: [])
    connection.drain(within: configuration.identity.credentialGrace.clampedNanoseconds, notice) {}
  }

  /// Tells the application that a connection has ended, and that its client has left if it was the
  /// last one.
  func left(_ connection: ServerConnection) {
    hooks.connectionEnded?(connection.peer)
    guard let client = connection.client else {
      shared.clients.otherLeft()
      hooks.disconnect?(connection.peer)
      return
    }
    client.leave(connection.peer)
    guard let number = client.ended() else { return }
    var absence = Absence(client: client, number: number, peer: connection.peer)
    let linger = configuration.identity.linger.clampedNanoseconds
    guard linger > 0, !isDraining,
      shared.clients.awaits(client, since: number, most: configuration.limits.maxConnections)
    else { return end(absence) }
    absence.timer = loop.schedule(at: loop.now + linger, self, token: client.id)
    // An earlier one, from which the client came back, is over.
    let earlier = absences.updateValue(absence, forKey: client.id)
    if let timer = earlier?.timer { loop.cancel(timer) }
  }

  /// Tells the application that a client has left, unless it came back.
  private func end(_ absence: Absence) {
    guard shared.clients.forget(absence.client, since: absence.number) else { return }
    hooks.disconnect?(absence.peer)
  }

  /// Waits for no client any more.
  func endAbsences() {
    for id in absences.keys.sorted() {
      guard let absence = absences.removeValue(forKey: id) else { continue }
      if let timer = absence.timer { loop.cancel(timer) }
      end(absence)
    }
  }
}

/// The timers of a lane are those of absences.
extension ServerLane: TimerHandler {
  func timerFired(token: UInt64) {
    if let absence = absences.removeValue(forKey: token) { end(absence) }
  }
}
