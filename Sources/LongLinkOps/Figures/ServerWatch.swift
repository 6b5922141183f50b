// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// Hears of a server's requests and connections, and of its end.
final class ServerWatch: Observer, ServerService {
  private struct State {
    var figures: [(loop: ObjectIdentifier, bound: LoopBound<LoopFigures>)] = []
    var ended = EndedConnections()
    /// The loops that time their handlers for the port.
    var timed: [ServerLoop] = []
    var onEnd: (@Sendable () async -> Void)?
    /// Whether nobody watches any more.
    var isOver = false
    var serverHasEnded = false
  }

  // Weak, because the server has the watch.
  weak let server: LongLinkServer?
  /// The names of methods for types that have none of their own.
  let methods: [MessageType: String]
  /// What writes recordings to files; nil if nothing does.
  let recordings: RecordingFiles?
  private let state = Mutex(State())

  init(
    _ server: LongLinkServer, methods: [MessageType: String], recordings: RecordingFiles?
  ) {
    self.server = server
    self.methods = methods
    self.recordings = recordings
  }

  /// Calls a function when the server has ended; nil for none. Returns false, and never calls it,
  /// if the server has ended already.
  func whenServerEnds(_ function: (@Sendable () async -> Void)?) -> Bool {
    state.withLock { state in
      guard !state.serverHasEnded else { return false }
      state.onEnd = function
      return true
    }
  }

  /// Ends the watch, because the port has ended: the server may go on.
  func end() {
    state.withLock { ($0.isOver, $0.onEnd) = (true, nil) }
    stopTiming()
  }

  /// The connections that ended last, in no particular order. On any thread.
  var endedConnections: [EndedConnection] { state.withLock { $0.ended }.all }

  /// What has happened on the current loop.
  var figures: Figures? {
    guard let figures = figuresOfLoop, let loop = EventLoop.current else { return nil }
    figures.forgetOld(at: loop.now)
    return figures.figures
  }

  // MARK: The server

  func serverStarted(on loop: EventLoop) {
    let loops = server?.watchedLoops ?? []
    let isWatched = state.withLock { state in
      guard !state.isOver else { return false }
      state.timed = loops
      return true
    }
    // So that it is known which handler blocks a loop.
    if isWatched { for loop in loops { loop.visit { $0.timeHandlers(true) } } }
    recordings?.prepare()
  }

  func serverStopped(on loop: EventLoop) async {
    stopTiming()
    // After a failed start the server can be started again, and begins anew with other loops.
    if server?.standing == .starting { state.withLock { $0.figures = [] } }
  }

  func serverEnded() async {
    let onEnd = state.withLock { state in
      state.serverHasEnded = true
      return state.onEnd.take()
    }
    await onEnd?()
  }

  private func stopTiming() {
    let timed = state.withLock { state in
      defer { state.timed = [] }
      return state.timed
    }
    for loop in timed { loop.visit { $0.timeHandlers(false) } }
  }

  // MARK: Connections and requests

  func began(_ link: LinkRecord) {
    if let figures = figuresOfLoop { link.attach(figures) }
  }

  func opened(_ link: LinkRecord) {
    if !link.isShort { link.attachment(of: LoopFigures.self)?.opened() }
  }

  func ended(_ link: LinkRecord) {
    guard !link.isShort, let reason = link.reason, let connection = EndedConnection(link) else {
      return
    }
    link.attachment(of: LoopFigures.self)?.ended(link, reason)
    let hasOpened = link.opened != nil
    state.withLock { $0.ended.add(connection, hasOpened: hasOpened) }
    if recordings?.wants(connection.reason) == true { record(connection.reason.rawValue, link.id) }
  }

  func ended(_ exchange: ExchangeRecord) {
    guard exchange.direction == .inbound else { return }
    exchange.link?.attachment(of: LoopFigures.self)?.ended(exchange)
  }

  private var figuresOfLoop: LoopFigures? {
    guard let loop = EventLoop.current else { return nil }
    let bound = state.withLock { state in
      if let known = state.figures.first(where: { $0.loop == ObjectIdentifier(loop) }) {
        return known.bound
      }
      let made = LoopBound(LoopFigures(names: methods), on: loop)
      state.figures.append((ObjectIdentifier(loop), made))
      return made
    }
    return bound.value
  }
}
#endif
