// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) import LongLinkTransport
package import LongLinkDriver

/// What stands above a client and hears of it on its loop, before anybody else does.
package protocol ClientWatcher: AnyObject {
  /// The connection stands elsewhere now.
  func connectionChanged(to state: ConnectionState)
  /// Requests go to other servers from now on.
  func serversSwitched()
  /// A push has come; tells whether the watcher has made use of it.
  func received(_ push: Push) -> Bool
}

/// A watcher that lives as long as whoever made it.
struct WeakWatcher {
  weak var watcher: (any ClientWatcher)?
}

extension LongLinkClient {
  /// Adds a watcher and tells it at once where the connection stands; on the client's loop.
  package func addWatcher(_ watcher: any ClientWatcher) {
    core.value.watchers.removeAll { $0.watcher == nil }
    core.value.watchers.append(WeakWatcher(watcher: watcher))
    watcher.connectionChanged(to: state)
  }
}

extension ClientCore {
  func show(_ state: ConnectionState) {
    guard state != states.state else { return }
    for entry in watchers { entry.watcher?.connectionChanged(to: state) }
    states.set(state)
  }

  func publish(_ push: Push) {
    var isUsed = false
    for entry in watchers {
      if entry.watcher?.received(push) == true { isUsed = true }
    }
    hub.publish(push, isUsed: isUsed)
  }
}
