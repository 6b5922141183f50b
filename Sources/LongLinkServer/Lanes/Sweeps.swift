// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver

/// What is done to many connections: to a slice of them in each turn of the loop, which serves
/// the others in between.
struct Sweep {
  enum Work {
    /// A push for the clients of the connections, for each only once.
    case broadcast(Broadcast, number: UInt64, Gate<BroadcastReport>)
    case drain(DrainNotice, until: LinkInstant, then: () -> Void)
  }

  /// The most connections in one turn. A push or a goaway, with its write, takes some 10 µs.
  static let slice = 256

  let work: Work
  /// The connections that it has still to come to; nil before it begins, with all of them.
  var rest: ArraySlice<UInt64>?
  var report = BroadcastReport()

  mutating func visit(_ connection: ServerConnection) {
    switch work {
    case .broadcast(let broadcast, let number, _):
      guard !connection.link.isShort else { return }
      if let client = connection.client, !client.claims(number, for: connection.peer) { return }
      report.count(broadcast.send(on: connection.link))
    case .drain(let notice, let end, _):
      connection.drain(within: max(0, end - connection.peer.loop.now), notice) {}
    }
  }

  func ends() {
    switch work {
    case .broadcast(_, _, let gate): gate.open(report)
    case .drain(_, _, let completion): completion()
    }
  }
}

/// The sweeps of a loop. Drains go before broadcasts, and each goes before those that came later.
struct Sweeps {
  struct Line {
    private var waiting = Queue<Sweep>()
    /// The one that has begun and is not over.
    var begun: Sweep?

    var isEmpty: Bool { begun == nil && waiting.isEmpty }

    mutating func append(_ sweep: Sweep) { waiting.append(sweep) }
    mutating func popFirst() -> Sweep? { begun.take() ?? waiting.popFirst() }
  }

  var drains = Line()
  var broadcasts = Line()
  /// Whether a slice is being visited, or the next one follows at the end of the turn.
  var isRunning = false
}
