// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// Accepts connections on one address, and distributes them over the loops in turn.
final class Listener: TransportHandler, TimerHandler {
  private let loop: EventLoop
  private let lanes: [LoopBound<ServerLane>]
  private let onAccept: (@Sendable (SocketAddress?) -> Bool)?
  private let shared: ServerShared
  private var socket: (any TransportListener)?
  private var next = 0
  private var pause: LoopTimer?

  /// The pause after a failed accept, in nanoseconds. An accept fails if no descriptor is free.
  private static let rest: Int64 = 100_000_000
  /// The most connections accepted in one turn of the loop, so that open ones get their turn too.
  private static let acceptsPerTurn = 64

  init(
    socket: any TransportListener, on loop: EventLoop, lanes: [LoopBound<ServerLane>],
    onAccept: (@Sendable (SocketAddress?) -> Bool)?, shared: ServerShared
  ) {
    self.socket = socket
    self.loop = loop
    self.lanes = lanes
    self.onAccept = onAccept
    self.shared = shared
  }

  var address: SocketAddress? { socket?.localAddress }

  func start() {
    socket?.attach(self, token: 0)
    socket?.setInterest(.read)
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    do throws(SocketError) {
      for _ in 0..<Listener.acceptsPerTurn {
        guard let accepted = try socket?.accept() else { return }
        deal(accepted)
      }
    } catch {
      shared.acceptFailed()
      shared.log.log(.warning, "Could not accept a connection", at: loop.now) {
        ["error": "\(error)"]
      }
      socket?.setInterest([])
      pause = loop.schedule(at: loop.now + Listener.rest, self, token: 0)
    }
  }

  private func deal(_ accepted: any AcceptedTransport) {
    let address = accepted.peerAddress
    let lane = lanes[next]
    do throws(ConnectionRejection) {
      if let address, shared.limits.isProxy(address) {
        let admission = try shared.admit(proxy: address, at: loop.now, to: lane)
        lane.loop.execute { lane.value.greet(accepted, admission) }
      } else {
        let admission = try shared.admit(address, at: loop.now, to: lane, asking: onAccept)
        lane.loop.execute { lane.value.adopt(accepted, admission) }
      }
      next = (next + 1) % lanes.count
    } catch {
      shared.logRejection(error, of: address, at: loop.now)  // Releasing the stream closes it.
    }
  }

  func timerFired(token: UInt64) {
    pause = nil
    socket?.setInterest(.read)
  }

  func close() {
    if let pause { loop.cancel(pause) }
    pause = nil
    socket?.close()
    socket = nil
  }
}
