import LongLinkDemoMessages
import LongLinkServer

/// The routes of `longlink serve`, by message type, as `Protocols/demo.proto` describes them.
enum DemoRoutes {
  static let echo: MessageType = 1
  static let sleep: MessageType = 2
  static let ticks: MessageType = 3
  static let fail: MessageType = 4
  static let stats: MessageType = 5

  /// Gives a server its routes, before it is started.
  static func install(on server: LongLinkServer) {
    server.route(echo) { request in request.body }
    server.route(sleep, SleepRequest.self) { message, request in
      try await request.clock.sleep(for: .milliseconds(Int64(message.milliseconds)))
      return EmptyBody()
    }
    server.route(ticks, TicksRequest.self) { message, request in
      guard let type = MessageType(rawValue: message.messageType) else {
        throw Rejection(.malformed, "message_type is over 16777215")
      }
      let session = request.session
      // The task cannot begin before this turn of the loop is over, and so follows the answer.
      Task(executorPreference: session.loop) { await push(message, as: type, to: session) }
      return EmptyBody()
    }
    server.route(fail, FailRequest.self) { message, _ in
      let code = ResponseCode(rawValue: message.code)
      guard code.rawValue == message.code, code.rawValue > 0, code != .ok else {
        throw Rejection(.malformed, "code must be within 1 and 8388607, and not 200")
      }
      throw Rejection(code, message.detail)
    }
    server.route(stats) { [unowned server] request in
      guard request.body.isEmpty else {
        throw Rejection(.malformed, "a request for stats has no body")
      }
      return stats(await server.counters())
    }
  }

  /// Pushes ticks until they are all sent or the session has ended.
  private static func push(
    _ request: TicksRequest, as type: MessageType, to session: PeerSession
  ) async {
    let interval = Duration.milliseconds(Int64(request.intervalMilliseconds))
    var number: UInt64 = 0
    while number < request.count {
      number += 1
      do {
        try await session.push(type, Tick(number: number))
        if interval > .zero, number < request.count {
          try await session.clock.sleep(for: interval)
        } else if number.isMultiple(of: 64) {
          // Others of the loop get their turn, and what was pushed leaves.
          await Task.yield()
        }
      } catch {
        return  // The session, or the server, has ended.
      }
    }
  }

  private static func stats(_ counters: ServerCounters) -> StatsReply {
    let connections = counters.connections
    return StatsReply(
      sessions: UInt64(counters.sessions),
      requestsReceived: connections.requestsReceived,
      requestsRunning: UInt64(counters.requestsRunning),
      requestsCancelled: connections.handlersCancelled + connections.handlersAbandoned,
      responsesSent: connections.responsesSent,
      protocolViolations: connections.violations.values.reduce(0, +))
  }
}
