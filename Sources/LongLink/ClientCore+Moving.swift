// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
import LongLinkTransport

/// Moving from one link to another, or to none.
extension ClientCore {
  /// Sends new requests over this link.
  func use(_ attempt: UInt32) {
    guard let connection = connection(attempt) else { return }
    connection.isEstablished = true
    counters.connects += 1
    if connection.heldSince != nil { counters.trialsPassed += 1 }
    connection.usedSince = loop.now
    connection.link.log(.info, "Connected")
    notifyObserver(.established(attempt))
    // Publish the state before requests and `connect()` callers resume.
    shortLinks?.machine.connected()
    publishState()
    requests.opened(connection.link)
    pushes.pump(over: connection.link)
    resumeConnectWaiters(.success(()))
  }

  /// Sends no new requests over this link, and closes it when its last one has ended.
  func retire(_ attempt: UInt32) {
    guard let connection = connection(attempt) else { return }
    let link = connection.link
    if connection.isEstablished, connection.hasAnswered { shortLinks?.machine.answered() }
    requests.retire(link)
    if !requests.hasLink { shortLinks?.machine.lost(at: loop.now) }
    updateWaitingPushes(.left)
    failWaiting(after: .failed, notConnected)
    finishIfDone(link)
  }

  /// Closes a retired link whose lingering time is over.
  func expire(_ attempt: UInt32) {
    guard let link = connection(attempt)?.link else { return }
    if !requests.isUnused(link) || link.requestsRunning > 0 { counters.linksExpired += 1 }
    link.close(.left)
  }

  func probe(_ attempt: UInt32) {
    connection(attempt)?.link.probe()
  }

  func pathChanged(network: String?) {
    guard closing == nil else { return }
    pathHeartbeat?.pathChanged(network: network)
    updateHeartbeatPace()
    notifyObserver(.pathChanged(network: network))
    machine.pathChanged(at: loop.now, bits: bits)
    shortLinks?.machine.pathChanged(at: loop.now)
    // There is no round that could fail first.
    if machine.state == .stopped { shortLinks?.machine.roundFailed() }
    perform()
    updateWays()
  }

  /// Sets the adaptive heartbeat's pace on each connection.
  func updateHeartbeatPace() {
    guard let pathHeartbeat else { return }
    for connection in connections { connection.link.setPace(pathHeartbeat.pace) }
  }

  /// Suspends the client, and calls `completion` when its last connection has ended. `bound` is in
  /// nanoseconds.
  func suspend(within bound: Int64, _ completion: @escaping @Sendable () -> Void) {
    guard closing == nil else {
      completion()
      return
    }
    notifyObserver(.suspended)
    lastFailure = ConnectFailure("suspended", detail: "the client is suspended")
    machine.suspend(lingering: bound, at: loop.now)
    shortLinks?.machine.suspend(lingering: bound, at: loop.now)
    perform()
    failWaiting(after: .failed, resumesConnect: true, notConnected)
    suspendWaiters.append(completion)
    resumeSuspendWaiters()
  }

  func resumeSuspendWaiters() {
    guard hasNoLinks || machine.state != .suspended else { return }
    let waiters = suspendWaiters
    suspendWaiters = []
    for waiter in waiters { waiter() }
  }

  func resume() {
    guard closing == nil else { return }
    notifyObserver(.resumed)
    machine.resume(at: loop.now, bits: bits)
    shortLinks?.machine.resume(wantsLink: machine.state != .idle, at: loop.now)
    perform()
    updateWays()
    resumeSuspendWaiters()
  }

  func switchServers(to servers: [ServerEntry]) {
    guard closing == nil else { return }
    let count = self.servers.entries.count
    let kept = self.servers.replace(with: servers)
    watchers.serversSwitched()
    // What others refused says nothing about new servers.
    if kept.contains(nil) { refusals.forget() }
    if kept.count != count || kept != kept.indices.map(Optional.some) {
      shortLinks?.machine.serversChanged()
    }
    machine.switchServers(to: self.servers.entries, kept: kept, at: loop.now, bits: bits)
    perform()
  }
}
