// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver

/// Handles what the application reports or wants: network changes, suspension and other servers.
extension ClientCore {
  func pathChanged(network: String?) {
    guard closing == nil else { return }
    pathHeartbeat?.pathChanged(network: network)
    updateHeartbeatPace()
    notifyObserver(.pathChanged(network: network))
    tell(.pathChanged)
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
    tell(.suspended(lingering: bound))
    failWaiting(after: .failed, resumesConnect: true, notConnected)
    suspendWaiters.append(completion)
    for connection in connections { finishIfDone(connection.link) }
    settle()
  }

  /// Resumes the callers of `suspend` if the client has no link left, or is not suspended any more.
  func completeSuspension() {
    guard !suspendWaiters.isEmpty, hasNoLinks || machine.state != .suspended else { return }
    let waiters = suspendWaiters
    suspendWaiters = []
    for waiter in waiters { waiter() }
  }

  func resume() {
    guard closing == nil else { return }
    notifyObserver(.resumed)
    tell(.resumed)
  }

  func switchServers(to servers: [ServerEntry]) {
    guard closing == nil else { return }
    let kept = self.servers.replace(with: servers)
    watchers.serversSwitched()
    tell(.serversSwitched(self.servers.entries, kept: kept))
  }
}
