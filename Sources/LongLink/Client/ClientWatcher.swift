// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) import LongLinkTransport
package import LongLinkDriver

/// A layer above a client. It is called on the client's loop, before all subscribers.
package protocol ClientWatcher: AnyObject {
  /// The connection's state has changed.
  func connectionChanged(to state: ConnectionState)
  /// Requests now go to other servers.
  func serversSwitched()
  /// A push has come; returns whether the watcher used it.
  func received(_ push: Push) -> Bool
}

extension LongLinkClient {
  /// Adds a watcher and calls it at once with the connection's state; on the client's loop.
  package func addWatcher(_ watcher: any ClientWatcher) {
    core.value.watchers.add(watcher)
    watcher.connectionChanged(to: state)
  }
}
