import Logging
import LongLinkConnection
import LongLinkCore
import LongLinkTransport

/// The part of a server that lives on one loop: its sessions, and what they counted.
final class ServerLane {
  let loop: EventLoop
  /// What every session is told; in a dialect, a session prefix of its own may come to it.
  let settings: SessionSettings
  private let configuration: ServerConfiguration
  let defaults: RequestDefaults
  let routes: Routes
  let logger: Logger
  /// The bounds of the server's requests to one session.
  let requestLimits = RequestLimits(maxWaiting: 1_024)
  /// The most pushes of the server that may wait for one session.
  let maxWaitingPushes = 1_024
  private let shared: ServerShared
  private var connections: [UInt64: ServerConnection] = [:]
  private var totals = ConnectionCounters()
  private var requestTotals = RequestCounters()
  /// Connections that arrive now are closed.
  private var isDraining = false
  private var onDrained: (@Sendable () -> Void)?

  init(
    loop: EventLoop, _ configuration: ServerConfiguration, _ settings: SessionSettings,
    routes: Routes, shared: ServerShared
  ) {
    self.loop = loop
    self.routes = routes
    self.shared = shared
    self.configuration = configuration
    self.settings = settings
    defaults = RequestDefaults(
      deadline: configuration.deadline.clampedNanoseconds, offline: .wait)
    logger = configuration.logger
  }

  /// Takes a connection that the listener accepted for this loop.
  func adopt(_ accepted: any AcceptedStream, id: UInt64) {
    do throws(SocketError) {
      let stream = try accepted.adopt(on: loop)
      guard !isDraining else {
        stream.close()
        shared.sessionEnded()
        return
      }
      guard let settings = settingsOfNext() else {
        stream.close()
        shared.sessionEnded()
        return
      }
      let connection = ServerConnection(id: id, stream: stream, settings, lane: self)
      connections[id] = connection
      connection.link.start(for: connection)
    } catch {
      logger.warning("Could not take a connection", metadata: ["error": "\(error)"])
      shared.sessionEnded()
    }
  }

  /// What the next session is told; nil, and logged, where its prefix does not fit.
  private func settingsOfNext() -> SessionSettings? {
    guard configuration.dialect.isPerConnection else { return settings }
    var settings = settings
    do throws(FrameLayoutError) {
      settings.dialect = try configuration.dialect.codec(.server, maxBody: settings.maxBody)
      return settings
    } catch {
      logger.error("Could not open a session", metadata: ["error": "\(error)"])
      return nil
    }
  }

  /// The serials of the server's own requests, in a dialect.
  var serials: ClosedRange<UInt32>? { configuration.dialect.serials(.server) }
  /// Why the server may not ask its clients anything; nil where it may.
  var objectionToRequests: String? {
    guard let dialect = configuration.dialect.description, serials == nil else { return nil }
    return "in \(dialect.name) a server may not ask"
  }

  func opened(_ connection: ServerConnection) {
    connection.link.logger.debug("Session opened")
    connection.wasOpened = true
    shared.onSession?(connection.session)
  }

  func received(_ push: Push, from session: PeerSession) {
    shared.received(push, from: session)
  }

  /// Counts why a session is lost, which the peer may take a while to hear.
  func abandoned(_ reason: CloseReason) {
    totals.ended(reason)
  }

  func ended(_ connection: ServerConnection) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
    totals.add(connection.link.session.counters, connection.responder.counters)
    totals.add(connection.pushCounters)
    requestTotals += connection.requestCounters
    shared.sessionEnded()
    if connection.wasOpened { shared.onSessionEnd?(connection.session) }
    if connections.isEmpty { finishDraining() }
  }

  /// The connections in the order in which they were accepted.
  private var ordered: [ServerConnection] {
    connections.keys.sorted().compactMap { connections[$0] }
  }

  /// Sends one frame, encoded once, to every session that can take it.
  func broadcast(_ broadcast: Broadcast) -> BroadcastReport {
    var report = BroadcastReport()
    for connection in ordered { connection.link.push(broadcast, &report) }
    return report
  }

  var sessions: [PeerSession] { ordered.map(\.session) }

  /// Adds what this loop's sessions, past and present, counted.
  func count(in counters: inout ServerCounters) {
    counters.connections += totals
    counters.requests += requestTotals
    for connection in connections.values {
      let link = connection.link
      counters.connections.add(link.session.counters, connection.responder.counters)
      counters.connections.add(connection.pushCounters)
      counters.requests += connection.requestCounters
      counters.requestsRunning += link.session.requestsRunning
      counters.pushesWaiting += connection.pushesWaiting
      counters.bytesUnwritten += link.session.outbox.totalBytes
    }
  }

  /// Drains every session and calls `completion` when the last one has ended.
  func drain(
    within bound: Int64, _ farewell: Farewell, _ completion: @escaping @Sendable () -> Void
  ) {
    isDraining = true
    onDrained = completion
    for connection in ordered { connection.drain(within: bound, farewell) {} }
    if connections.isEmpty { finishDraining() }
  }

  /// Drains one session and calls `completion` when it has ended.
  func drain(
    _ session: PeerSession, within bound: Int64, _ farewell: Farewell,
    _ completion: @escaping @Sendable () -> Void
  ) {
    // Another server may have a session of that number on the same loop.
    guard let connection = connections[session.id], connection.session === session else {
      completion()
      return
    }
    connection.drain(within: bound, farewell, completion)
  }

  private func finishDraining() {
    guard let onDrained else { return }
    self.onDrained = nil
    onDrained()
  }
}
