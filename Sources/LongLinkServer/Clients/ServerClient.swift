// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import Synchronization

/// A client of the server: its connections have the same principal and `client_id`.
///
/// The connections may be on different loops. Any thread may use a client.
final class ServerClient: PeerClient {
  /// The most open connections of one client. When another one opens, the oldest has to end.
  static let mostConnections = 4

  /// The state that all clients of a server share.
  final class Shared: Sendable {
    /// The most bytes of pushes that may be on their way between loops for one client.
    let mostHandedOver: Int
    let pushesLost = Atomic<UInt64>(0)

    init(mostHandedOver: Int) {
      self.mostHandedOver = mostHandedOver
    }
  }

  /// An open connection of the client, and the broadcasts that it gets.
  struct Member {
    let peer: Peer
    /// The number of the last broadcast that had begun when the connection opened; if it was the
    /// client's only connection, that had begun on its loop. Only later broadcasts are sent here.
    let since: UInt64
    /// The number of the last broadcast that was sent on this connection.
    var sent: UInt64 = 0
    /// Broadcasts after `sent` that the client has got on newer connections, which have left.
    var skips: [ClosedRange<UInt64>] = []

    /// Whether a broadcast is to be sent on this connection. The numbers of broadcasts ascend.
    mutating func takes(_ broadcast: UInt64) -> Bool {
      guard sent < broadcast, !skips.contains(where: { $0.contains(broadcast) }) else {
        return false
      }
      sent = broadcast
      skip([])
      return true
    }

    /// Notes the broadcasts that a newer connection has sent before it left.
    mutating func follow(_ left: Member) {
      skip(left.skips + (left.sent > left.since ? [left.since + 1...left.sent] : []))
    }

    private mutating func skip(_ more: [ClosedRange<UInt64>]) {
      if skips.isEmpty, more.isEmpty { return }
      skips = (skips + more).filter { $0.upperBound > sent }
    }

    /// The last broadcast that the client got on this connection, or on newer ones that have left.
    var last: UInt64 { skips.reduce(sent) { max($0, $1.upperBound) } }
  }

  /// The client's older connections when another one opens.
  struct Older {
    /// The oldest ones, which have to end because the client has too many.
    var leaving: [Peer] = []
    var staying: [Peer] = []
  }

  /// The state of a client that has more than one connection or none, or got pushes from other
  /// loops.
  private final class Rest {
    /// The open connections before the current one, the oldest one first.
    var older: [Member] = []
    /// Connections that were told to leave. They count as `ending`.
    var leaving: [Peer] = []
    /// The number of connections that carry nothing more for the client, but have not ended yet.
    var ending = 0
    /// The number of the last broadcast that was sent on connections that have left.
    var sent: UInt64 = 0
    /// How often the client was left without a connection.
    var absences: UInt64 = 0
    /// The bytes of pushes that are on their way to the loop of a connection.
    var handedOver = 0
    /// Why the last such push could not be sent. As `any Error` it takes only a word.
    var failure: (any Error)?

    /// Whether nothing is in it but the last broadcast.
    var isOver: Bool {
      older.isEmpty && leaving.isEmpty && ending == 0 && absences == 0 && handedOver == 0
        && failure == nil
    }
  }

  private struct State {
    /// The connection that was opened last.
    var current: Member?
    /// Nil for most clients.
    private(set) var rest: Rest?

    var open: [Peer] {
      var open = rest?.older.map(\.peer) ?? []
      if let current { open.append(current.peer) }
      return open
    }

    /// The rest, made if there is none.
    mutating func madeRest() -> Rest {
      if let rest { return rest }
      let new = Rest()
      rest = new
      return new
    }

    /// Forgets the rest, if the current connection is all that is left and can keep what was sent.
    mutating func tidy() {
      guard let current, let rest, rest.isOver else { return }
      if rest.sent <= current.since {
        // It takes later broadcasts only.
        self.current?.sent = max(current.sent, rest.sent)
      } else if rest.sent > current.last {
        return
      }
      self.rest = nil
    }

    /// Whether an absence has not ended.
    func isAway(since absence: UInt64) -> Bool {
      guard current == nil, let rest else { return false }
      return rest.ending == 0 && rest.absences == absence
    }
  }

  /// The client's number: that of its first connection.
  let id: UInt64
  let clientID: ClientID?
  let principal: String?
  private let shared: Shared
  private let state = Mutex(State())

  init(id: UInt64, _ clientID: ClientID?, principal: String?, _ shared: Shared) {
    self.id = id
    self.clientID = clientID
    self.principal = principal
    self.shared = shared
  }

  /// Whether it is a client of the principal with this name.
  func isOf(_ principal: String) -> Bool { self.principal?.isSameBytes(as: principal) == true }

  var current: Peer? { state.withLock { $0.current?.peer } }
  var open: [Peer] { state.withLock { $0.open } }
  var connected: [Peer] { state.withLock { ($0.rest?.leaving ?? []) + $0.open } }

  /// The number of the last broadcast that was sent on connections that have left.
  var sent: UInt64 { state.withLock { $0.rest?.sent ?? 0 } }

  /// Makes a newly opened connection the current one, and returns the older ones. `broadcast` is
  /// the last broadcast that has begun, and `last` the last one that has begun on the connection's
  /// loop. `sent` is the last one that the client got before it was forgotten.
  func join(
    _ peer: Peer, since broadcast: UInt64, onLoop last: UInt64, sent: UInt64 = 0
  ) -> Older {
    state.withLock { state in
      guard let previous = state.current else {
        // Broadcasts that have not begun on this loop come here, as to any new client.
        state.current = Member(peer: peer, since: last, sent: state.rest?.sent ?? sent)
        state.rest?.failure = nil
        return Older()
      }
      // Broadcasts that have already begun come on the older connections.
      state.current = Member(peer: peer, since: broadcast)
      let rest = state.madeRest()
      rest.older.append(previous)
      var result = Older()
      if rest.older.count >= ServerClient.mostConnections {
        let oldest = rest.older.removeFirst()
        rest.sent = max(rest.sent, oldest.last)
        rest.leaving.append(oldest.peer)
        rest.ending += 1
        result.leaving = [oldest.peer]
      }
      result.staying = rest.older.map(\.peer)
      return result
    }
  }

  /// Takes away a connection that carries nothing any more; call `ended` when it has ended. Does
  /// nothing if it was told to leave before.
  func leave(_ peer: Peer) {
    state.withLock { state in
      let rest = state.madeRest()
      if let current = state.current, current.peer === peer {
        state.current = rest.older.popLast()
        rest.sent = max(rest.sent, current.last)
        state.current?.follow(current)
      } else if let index = rest.older.firstIndex(where: { $0.peer === peer }) {
        let left = rest.older.remove(at: index)
        rest.sent = max(rest.sent, left.last)
        if index > 0 { rest.older[index - 1].follow(left) }
      } else {
        rest.leaving.removeAll { $0 === peer }
        return
      }
      rest.ending += 1
    }
  }

  /// Records that a connection has ended which had left. If it was the last one, an absence begins,
  /// whose number is returned; otherwise nil.
  func ended() -> UInt64? {
    state.withLock { state in
      let rest = state.madeRest()
      rest.ending -= 1
      guard state.current == nil, rest.ending == 0 else {
        state.tidy()
        return nil
      }
      rest.absences += 1
      return rest.absences
    }
  }

  /// Whether an absence still lasts, so that the client has no connection.
  func isAway(since absence: UInt64) -> Bool {
    state.withLock { $0.isAway(since: absence) }
  }

  /// Ends an absence for ever. Returns false if the client has come back.
  func isGone(since absence: UInt64) -> Bool {
    state.withLock { state in
      guard state.isAway(since: absence) else { return false }
      state.rest?.absences += 1
      return true
    }
  }

  /// Whether a connection has to send a broadcast to the client; no other connection does.
  ///
  /// It is the newest connection that was open when the broadcast began. If that one ends before
  /// its turn, the client misses the broadcast, as it misses a push that was on its way.
  func claims(_ broadcast: UInt64, for peer: Peer) -> Bool {
    state.withLock { state in
      if let current = state.current, current.since < broadcast {
        return current.peer === peer && state.current?.takes(broadcast) == true
      }
      guard let rest = state.rest,
        let index = rest.older.lastIndex(where: { $0.since < broadcast }),
        rest.older[index].peer === peer
      else { return false }
      return rest.older[index].takes(broadcast)
    }
  }

  // MARK: Pushes from other loops

  /// The bytes that a push on its way counts for besides its body.
  private static let overhead = 128

  func handOver(_ type: MessageType, bytes: Int) throws(LongLinkError) {
    let bytes = bytes + Self.overhead
    let failure = state.withLock { state -> LongLinkError? in
      let rest = state.madeRest()
      if let failure = rest.failure.take() as? LongLinkError { return failure }
      guard rest.handedOver == 0 || rest.handedOver + bytes <= shared.mostHandedOver else {
        return LongLinkError(
          .overloaded, doing: .push(type),
          detail: "\(rest.handedOver) bytes are on the way to the loop of the client's connection")
      }
      rest.handedOver += bytes
      return nil
    }
    if let failure { throw failure }
  }

  func handedOver(bytes: Int, _ failure: LongLinkError?) {
    if failure != nil { shared.pushesLost.add(1, ordering: .relaxed) }
    state.withLock { state in
      let rest = state.madeRest()
      rest.handedOver -= bytes + Self.overhead
      if let failure { rest.failure = failure }
    }
  }
}
