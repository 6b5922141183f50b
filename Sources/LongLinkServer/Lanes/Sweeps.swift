// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver

/// An action on many connections. Each turn of the loop performs it for a slice of them, so that
/// the loop serves other work in between.
struct Sweep {
  enum Work {
    /// A push to the clients of the connections, once for each client.
    case broadcast(Broadcast, number: UInt64, Gate<BroadcastReport>)
    case drain(DrainNotice, until: LinkInstant, then: () -> Void)
  }

  /// The most connections in one turn. A push or a goaway, with its write, takes some 10 µs.
  static let slice = 256

  let work: Work
  /// The connections that are still to be visited; nil until the sweep begins with all connections.
  var rest: ArraySlice<UInt64>?
  var report = BroadcastReport()

  mutating func visit(_ connection: ServerConnection) {
    switch work {
    case .broadcast(let broadcast, let number, _):
      report.count(broadcast, number: number, on: connection)
    case .drain(let notice, let end, _):
      connection.drain(within: max(0, end - connection.peer.loop.now), notice) {}
    }
  }
}

extension BroadcastReport {
  /// Sends a broadcast on a connection, if it is its client's to send it on, and counts it.
  mutating func count(_ broadcast: Broadcast, number: UInt64, on connection: ServerConnection) {
    // A connection has its client some steps after its handshake. What comes in between has begun
    // before it joined, and is not for it. A short link, which gets none, never counts as opened.
    guard connection.wasOpened else { return }
    if let client = connection.client, !client.claims(number, for: connection.peer) { return }
    count(broadcast.send(on: connection.link))
  }
}

/// The sweeps of a loop. Drains go before broadcasts; otherwise, earlier sweeps go first.
struct Sweeps {
  struct Line {
    private var waiting = Queue<Sweep>()
    /// The sweep that has begun and is not finished; nil if there is none.
    var begun: Sweep?

    var isEmpty: Bool { begun == nil && waiting.isEmpty }

    mutating func append(_ sweep: Sweep) { waiting.append(sweep) }
    mutating func popFirst() -> Sweep? { begun.take() ?? waiting.popFirst() }
  }

  var drains = Line()
  var broadcasts = Line()
  /// Whether a slice is being visited, or the next slice follows at the end of the turn.
  var isRunning = false
}
