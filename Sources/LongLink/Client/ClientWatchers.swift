// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver

/// The watchers of a client. It holds them weakly.
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

  /// Passes a push to all of them; returns whether one of them used it.
  func received(_ push: Push) -> Bool {
    entries.reduce(false) { isUsed, entry in entry.watcher?.received(push) == true || isUsed }
  }
}
