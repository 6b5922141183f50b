import LongLinkConnection
import LongLinkCore
import Synchronization

/// What all loops of a server share.
final class ServerShared: Sendable {
  private struct State {
    var sessions = 0
    var nextID: UInt64 = 0
    var accepted: UInt64 = 0
    var turnedAway: UInt64 = 0
    var acceptFailures: UInt64 = 0
    var pushHandlers: [MessageType: @Sendable (Push, PeerSession) -> Void] = [:]
    var unhandledPushes: UInt64 = 0
    var onSession: (@Sendable (PeerSession) -> Void)?
    var onSessionEnd: (@Sendable (PeerSession) -> Void)?
  }

  private let state = Mutex(State())
  private let maxSessions: Int

  init(maxSessions: Int) {
    self.maxSessions = maxSessions
  }

  var onSession: (@Sendable (PeerSession) -> Void)? {
    get { state.withLock { $0.onSession } }
    set { state.withLock { $0.onSession = newValue } }
  }

  var onSessionEnd: (@Sendable (PeerSession) -> Void)? {
    get { state.withLock { $0.onSessionEnd } }
    set { state.withLock { $0.onSessionEnd = newValue } }
  }

  func handle(_ type: MessageType, _ handler: @escaping @Sendable (Push, PeerSession) -> Void) {
    state.withLock { $0.pushHandlers[type] = handler }
  }

  func received(_ push: Push, from session: PeerSession) {
    let handler = state.withLock { state in
      let handler = state.pushHandlers[push.type]
      if handler == nil { state.unhandledPushes += 1 }
      return handler
    }
    handler?(push, session)
  }

  /// A number for a new session; nil when there are as many as may be.
  func admit() -> UInt64? {
    state.withLock { state in
      guard state.sessions < maxSessions else {
        state.turnedAway += 1
        return nil
      }
      state.sessions += 1
      state.accepted += 1
      state.nextID += 1
      return state.nextID
    }
  }

  func sessionEnded() {
    state.withLock { $0.sessions -= 1 }
  }

  func acceptFailed() {
    state.withLock { $0.acceptFailures += 1 }
  }

  func fill(_ counters: inout ServerCounters) {
    state.withLock { state in
      counters.sessions = state.sessions
      counters.sessionsAccepted = state.accepted
      counters.sessionsTurnedAway = state.turnedAway
      counters.acceptFailures = state.acceptFailures
      counters.pushesUnhandled = state.unhandledPushes
    }
  }
}

/// What a server has counted since it was started.
public struct ServerCounters: Hashable, Sendable {
  /// Sessions that are open now.
  public var sessions = 0
  /// Connections that became sessions.
  public var sessionsAccepted: UInt64 = 0
  /// Connections that were closed at once, since there were as many sessions as may be.
  public var sessionsTurnedAway: UInt64 = 0
  /// Connections that the system could not hand over (no descriptor was left, for instance).
  public var acceptFailures: UInt64 = 0
  /// Requests whose handlers run now, or whose answers are still being sent.
  public var requestsRunning = 0
  /// Pushes that wait now for room on their sessions.
  public var pushesWaiting = 0
  /// Bytes that wait now to be written to the sessions.
  public var bytesUnwritten = 0
  /// Pushes of clients that no handler was set for.
  public var pushesUnhandled: UInt64 = 0
  /// What the sessions, past and present, counted.
  public var connections = ConnectionCounters()
  /// How the server's own requests ended.
  public var requests = RequestCounters()
}
