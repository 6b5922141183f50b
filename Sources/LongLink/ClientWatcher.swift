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

/// The watchers of a client, each for as long as it is held elsewhere.
struct ClientWatchers {
  private struct Entry {
    weak var watcher: (any ClientWatcher)?
  }

  private var entries: [Entry] = []

  mutating func add(_ watcher: any ClientWatcher) {
    entries.removeAll { $0.watcher == nil }
    entries.append(Entry(watcher: watcher))
  }

  func connectionChanged(to state: ConnectionState) {
    for entry in entries { entry.watcher?.connectionChanged(to: state) }
  }

  func serversSwitched() {
    for entry in entries { entry.watcher?.serversSwitched() }
  }

  /// Tells all of them of a push, and whether one of them has made use of it.
  func received(_ push: Push) -> Bool {
    entries.reduce(false) { isUsed, entry in entry.watcher?.received(push) == true || isUsed }
  }
}

extension LongLinkClient {
  /// Adds a watcher and calls it at once with the connection's state; on the client's loop.
  package func addWatcher(_ watcher: any ClientWatcher) {
    core.value.watchers.add(watcher)
    watcher.connectionChanged(to: state)
  }
}

extension ClientCore {
  func show(_ state: ConnectionState) {
    guard state != states.state else { return }
    watchers.connectionChanged(to: state)
    states.set(state)
  }
}
