// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkDemoMessages
import LongLinkServer

/// The routes of `longlink serve`, by message type, as `Protocols/demo.proto` describes them.
enum DemoRoutes {
  static let echo: MessageType = 1
  static let sleep: MessageType = 2
  static let ticks: MessageType = 3
  static let fail: MessageType = 4
  static let stats = RPCMethod<EmptyBody, StatsReply>(5)

  static let block = RPCMethod<BlockRequest, EmptyBody>(24)

  /// The names of the routes, for operators.
  static let names: [MessageType: String] = [
    echo: "Echo", sleep: "Sleep", ticks: "Ticks", fail: "Fail", 5: "Stats", 6: "Count", 7: "Sum",
    8: "Relay", 9: "Feed", 10: "Once", 11: "Broadcast", 12: "Create", 13: "Status", 14: "Append",
    15: "Finish", 16: "Abort", 19: "Peers", 24: "Block",
  ]

  /// Installs the route that holds up the loop of its connection.
  static func installBlocking(on server: LongLinkServer) {
    server.route(block) { message, _ in
      guard message.milliseconds <= 10_000 else {
        throw Rejection(.malformed, "milliseconds is over 10000")
      }
      usleep(message.milliseconds * 1_000)
      return EmptyBody()
    }
  }

  /// Installs the routes on a server before it starts. `effects` gets the runs of route 10.
  static func install(on server: LongLinkServer, noting effects: EffectFile? = nil) {
    // Tickers outlive their requests, so no other limit bounds them.
    let tickers = Allowance(of: 1_024)
    server.route(echo) { request in request.body }
    server.route(RPCMethod<SleepRequest, EmptyBody>(sleep)) { message, request in
      try await request.clock.sleep(for: .milliseconds(Int64(message.milliseconds)))
      return EmptyBody()
    }
    server.route(RPCMethod<TicksRequest, EmptyBody>(ticks)) { message, request in
      let type = try pushType(message.messageType)
      let peer = request.peer
      guard tickers.take(1) else {
        throw Rejection(.overloaded, "too many tickers are running", retryAfter: .seconds(1))
      }
      // The task cannot begin before this turn of the loop ends, so its pushes follow the response.
      Task(executorPreference: peer.loop) {
        await push(message, as: type, to: peer)
        tickers.giveBack(1)
      }
      return EmptyBody()
    }
    server.route(RPCMethod<FailRequest, EmptyBody>(fail)) { message, _ in
      guard message.code > 0, let code = ResponseCode(rawValue: message.code), code != .ok else {
        throw Rejection(.malformed, "code must be within 1 and 8388607, and not 200")
      }
      throw Rejection(code, message.detail)
    }
    server.route(stats) { [unowned server] _, _ in
      stats(await server.counters())
    }
    installOnce(on: server, noting: effects)
    installClients(on: server)
    installStreams(on: server)
  }

  /// The message type of the pushes that a request asks for.
  static func pushType(_ number: UInt32) throws -> MessageType {
    guard let type = MessageType(rawValue: number) else {
      throw Rejection(.malformed, "message_type is over 16777215")
    }
    return type
  }

  /// Pushes ticks to a client, whichever connection it has, until they are all sent or it has none.
  private static func push(
    _ request: TicksRequest, as type: MessageType, to peer: Peer
  ) async {
    // That the client has left is noticed after each sleep.
    let interval = Duration.milliseconds(Int64(min(request.intervalMilliseconds, 60_000)))
    var number: UInt64 = 0
    while number < request.count {
      do {
        try await peer.push(type, Tick(number: number + 1))
        number += 1
        if interval > .zero, number < request.count {
          try await peer.clock.sleep(for: interval)
        } else if number.isMultiple(of: 64) {
          // Lets other tasks of the loop run, and the loop write the pushes.
          await Task.yield()
        }
      } catch let error as LongLinkError
        where error.code == .connectionLost || error.code == .deadlineExceeded
      {
        // This tick waited for room on a connection that has ended, or that the client has left
        // without reading. It was not sent, and goes over the current one, if there is one.
        await Task.yield()
      } catch {
        return  // The client has no connection, or the server has ended.
      }
    }
  }

  private static func stats(_ counters: ServerCounters) -> StatsReply {
    let connections = counters.connections
    return StatsReply(
      connections: UInt64(counters.openConnections),
      requestsReceived: connections.requestsReceived,
      requestsRunning: UInt64(counters.requestsRunning),
      requestsCancelled: connections.handlersCancelled + connections.handlersAbandoned,
      responsesSent: connections.responsesSent,
      protocolViolations: counters.violations.values.reduce(0, +),
      onceRequests: counters.onceRequests,
      onceDetached: UInt64(counters.onceDetached),
      onceRecords: UInt64(counters.onceRecords),
      onceBytes: UInt64(counters.onceBytes))
  }
}
