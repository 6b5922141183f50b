// SPDX-License-Identifier: Apache-2.0

/// What holds back reading, or the processing of what was read, while the connection is open.
package struct ReadHold: Equatable, Sendable {
  /// The turn that handlers get before a request is refused because too many run.
  private enum Turn {
    case notNeeded
    case awaited
    case had
  }

  /// The bytes that the peer can leave unread before reading its requests is suspended. Set if
  /// memory that the connections share is scarce.
  package var mostUnread = Int.max
  /// Whether the peer sends faster than it may.
  private(set) var isSlowed = false
  private var turn = Turn.notNeeded
  /// When this side last resumed reading after it had suspended it.
  private(set) var resumed: LinkInstant

  init(at now: LinkInstant) {
    resumed = now
  }

  /// Whether a server suspends reading while the peer has left `unread` bytes unread, and may leave
  /// at most `most`.
  func holds(unread: Int, of most: Int) -> Bool { isSlowed || unread > min(mostUnread, most / 2) }

  /// Sets whether the peer sends faster than it may. Returns false if that is known already.
  mutating func setSlowed(_ isSlowed: Bool) -> Bool {
    defer { self.isSlowed = isSlowed }
    return self.isSlowed != isSlowed
  }

  /// Notes that reading resumes.
  mutating func resume(at now: LinkInstant) { resumed = now }

  // MARK: Handlers

  /// Whether handlers should get a turn before more frames are processed.
  package var waitsForHandlers: Bool { turn == .awaited }

  /// Makes the next frame wait for a turn of the handlers; false if they have just had one.
  mutating func awaitsHandlers() -> Bool {
    guard turn != .had else { return false }
    turn = .awaited
    return true
  }

  /// Notes that handlers have had a turn: requests for which there is still no room are refused.
  package mutating func handlersHadTurn() { turn = .had }

  /// Notes that the frames that waited for the handlers' turn were processed.
  package mutating func handlersTurnEnds() {
    if turn == .had { turn = .notNeeded }
  }
}
