// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import Testing

@testable import LongLink

/// The layers above a client, and what they are told.
@Suite struct ClientWatchersTests {
  private final class Watcher: ClientWatcher {
    let name: String
    let uses: Set<UInt32>
    let log: Log

    init(_ name: String, uses: Set<UInt32> = [], _ log: Log) {
      self.name = name
      self.uses = uses
      self.log = log
    }

    func connectionChanged(to state: ConnectionState) { log.lines.append("\(name) \(state)") }
    func serversSwitched() { log.lines.append("\(name) switched") }
    func received(_ push: Push) -> Bool {
      log.lines.append("\(name) \(push.type)")
      return uses.contains(push.type.rawValue)
    }
  }

  private final class Log {
    var lines: [String] = []

    func take() -> [String] {
      defer { lines = [] }
      return lines
    }
  }

  @Test func `all watchers are told, in the order in which they came`() {
    let log = Log()
    var watchers = ClientWatchers()
    #expect(!watchers.received(Push(type: 1, body: [])))
    let (first, second) = (Watcher("first", log), Watcher("second", log))
    watchers.add(first)
    watchers.add(second)
    watchers.connectionChanged(to: .idle)
    watchers.serversSwitched()
    #expect(log.take() == ["first idle", "second idle", "first switched", "second switched"])
    withExtendedLifetime((first, second)) {}
  }

  @Test func `a push is used if one watcher uses it, and all see it`() {
    let log = Log()
    var watchers = ClientWatchers()
    let both = [Watcher("first", uses: [1], log), Watcher("second", uses: [2], log)]
    for watcher in both { watchers.add(watcher) }
    #expect(watchers.received(Push(type: 1, body: [])))
    #expect(watchers.received(Push(type: 2, body: [])))
    #expect(!watchers.received(Push(type: 3, body: [])))
    #expect(log.take() == ["first 1", "second 1", "first 2", "second 2", "first 3", "second 3"])
    withExtendedLifetime(both) {}
  }

  @Test func `a watcher that was released is not retained, and the others go on`() {
    let log = Log()
    var watchers = ClientWatchers()
    var first: Watcher? = Watcher("first", uses: [1], log)
    let second = Watcher("second", log)
    weak let released = first
    if let first { watchers.add(first) }
    watchers.add(second)
    first = nil
    #expect(released == nil)
    #expect(!watchers.received(Push(type: 1, body: [])))
    let third = Watcher("third", log)
    watchers.add(third)
    watchers.serversSwitched()
    #expect(log.take() == ["second 1", "second switched", "third switched"])
    withExtendedLifetime((second, third)) {}
  }
}
