// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import Synchronization

/// A client of the server: the connections whose principal and `client_id` are the same.
///
/// Its connections may lie on different loops. It can be used on any thread.
final class ServerClient: PeerClient {
  /// The most open connections of one client; a further one lets the oldest end.
  static let mostConnections = 4

  /// What all clients of a server share.
  final class Shared: Sendable {
    /// The most bytes of pushes that one client has under way between loops.
    let mostHandedOver: Int
    let pushesLost = Atomic<UInt64>(0)

    init(mostHandedOver: Int) {
      self.mostHandedOver = mostHandedOver
    }
  }

  /// An open connection.
  struct Member {
    let peer: Peer
    /// The number of the last broadcast that had begun when the connection opened; on its loop, if
    /// it was the client's only connection.
    let since: UInt64
    /// The number of the last broadcast that was sent here.
    var sent: UInt64 = 0
    /// Later broadcasts that were sent on newer connections, which have left.
    var skips: [ClosedRange<UInt64>] = []

    /// Whether a broadcast is to be sent here. Their numbers ascend.
    mutating func takes(_ broadcast: UInt64) -> Bool {
      guard sent < broadcast, !skips.contains(where: { $0.contains(broadcast) }) else {
        return false
      }
      sent = broadcast
      skip([])
      return true
    }

    /// Takes over what a newer connection has sent.
    mutating func follow(_ left: Member) {
      skip(left.skips + (left.sent > left.since ? [left.since + 1...left.sent] : []))
    }

    private mutating func skip(_ more: [ClosedRange<UInt64>]) {
      if skips.isEmpty, more.isEmpty { return }
      skips = (skips + more).filter { $0.upperBound > sent }
    }

    /// The greatest number of a broadcast that the client was sent here or on a newer connection.
    var last: UInt64 { skips.reduce(sent) { max($0, $1.upperBound) } }
  }

  /// What becomes of the older connections when another one opens.
  struct Older {
    /// Those that have to end, since they are too many.
    var leaving: [Peer] = []
    var staying: [Peer] = []
  }

  private struct State {
    /// The connection that was opened last. The others are apart, since most clients have one.
    var current: Member?
    /// The other open connections, the oldest one first.
    var older: [Member] = []
    /// Connections that were told to leave. They count as ending.
    var leaving: [Peer] = []
    /// The connections that have ended for the client, though not for the server.
    var ending = 0
    /// The number of the last broadcast that was sent on connections that have left.
    var sent: UInt64 = 0
    /// How often it had no connection any more.
    var absences: UInt64 = 0
    /// Bytes of pushes that are on the way to the loop of a connection.
    var handedOver = 0
    /// Why the last of these could not be sent. It is `any Error`, which takes a word.
    var failure: (any Error)?
  }

  /// The number of its first connection.
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

  var current: Peer? { state.withLock { $0.current?.peer } }
  var open: [Peer] { state.withLock { Self.open($0) } }
  var connected: [Peer] { state.withLock { $0.leaving + Self.open($0) } }

  private static func open(_ state: borrowing State) -> [Peer] {
    var open = state.older.map(\.peer)
    if let current = state.current { open.append(current.peer) }
    return open
  }

  /// Makes an open connection the current one. `broadcast` is the number of the last broadcast that
  /// has begun, and `last` that of the last one on the connection's loop.
  func join(_ peer: Peer, since broadcast: UInt64, onLoop last: UInt64) -> Older {
    state.withLock { state in
      guard let previous = state.current else {
        // What has not begun on this loop yet comes here, as to any new client.
        state.current = Member(peer: peer, since: last, sent: state.sent)
        state.failure = nil
        return Older()
      }
      // What has begun comes on the older connections.
      state.current = Member(peer: peer, since: broadcast)
      state.older.append(previous)
      var result = Older()
      if state.older.count >= ServerClient.mostConnections {
        let oldest = state.older.removeFirst()
        state.sent = max(state.sent, oldest.last)
        state.leaving.append(oldest.peer)
        state.ending += 1
        result.leaving = [oldest.peer]
      }
      result.staying = state.older.map(\.peer)
      return result
    }
  }

  /// Takes a connection away that carries nothing any more; `ended` follows. Nothing happens if it
  /// was told to leave before.
  func leave(_ peer: Peer) {
    state.withLock { state in
      if let current = state.current, current.peer === peer {
        state.current = state.older.popLast()
        state.sent = max(state.sent, current.last)
        state.current?.follow(current)
      } else if let index = state.older.firstIndex(where: { $0.peer === peer }) {
        let left = state.older.remove(at: index)
        state.sent = max(state.sent, left.last)
        if index > 0 { state.older[index - 1].follow(left) }
      } else {
        state.leaving.removeAll { $0 === peer }
        return
      }
      state.ending += 1
    }
  }

  /// A connection that has left has ended. Returns the number of the absence that begins if it was
  /// the last one.
  func ended() -> UInt64? {
    state.withLock { state in
      state.ending -= 1
      guard state.current == nil, state.ending == 0 else { return nil }
      state.absences += 1
      return state.absences
    }
  }

  /// Whether an absence has not ended.
  func isAway(since absence: UInt64) -> Bool {
    state.withLock { Self.isAway($0, since: absence) }
  }

  private static func isAway(_ state: borrowing State, since absence: UInt64) -> Bool {
    state.current == nil && state.ending == 0 && state.absences == absence
  }

  /// Ends an absence for ever. Returns false if it is over, since the client came back.
  func isGone(since absence: UInt64) -> Bool {
    state.withLock { state in
      guard Self.isAway(state, since: absence) else { return false }
      state.absences += 1
      return true
    }
  }

  /// Whether a connection is the one that gets a broadcast; then it is sent to no other.
  ///
  /// It is the newest one of those that had opened when the broadcast began. A broadcast is lost if
  /// that one ends before its turn, as a push is that was on its way.
  func claims(_ broadcast: UInt64, for peer: Peer) -> Bool {
    state.withLock { state in
      if let current = state.current, current.since < broadcast {
        return current.peer === peer && state.current?.takes(broadcast) == true
      }
      guard let index = state.older.lastIndex(where: { $0.since < broadcast }),
        state.older[index].peer === peer
      else { return false }
      return state.older[index].takes(broadcast)
    }
  }

  // MARK: Pushes from other loops

  /// What a push takes on its way besides its body.
  private static let overhead = 128

  func handOver(_ type: MessageType, bytes: Int) throws(LongLinkError) {
    let bytes = bytes + Self.overhead
    let failure = state.withLock { state -> LongLinkError? in
      if let failure = state.failure.take() as? LongLinkError { return failure }
      guard state.handedOver == 0 || state.handedOver + bytes <= shared.mostHandedOver else {
        return LongLinkError(
          .overloaded, doing: .push(type),
          detail: "\(state.handedOver) bytes are on the way to the loop of the client's connection")
      }
      state.handedOver += bytes
      return nil
    }
    if let failure { throw failure }
  }

  func handedOver(bytes: Int, _ failure: LongLinkError?) {
    if failure != nil { shared.pushesLost.add(1, ordering: .relaxed) }
    state.withLock { state in
      state.handedOver -= bytes + Self.overhead
      if let failure { state.failure = failure }
    }
  }
}
