// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The application's pings that wait for their pongs. Each is taken once.
struct PingWaiters {
  typealias Completion = @Sendable (Result<Duration, LongLinkError>) -> Void

  private struct Waiter {
    let id: UInt64
    let link: Link
    let completion: Completion
  }

  /// The most pings within 10 s. A server closes the connection after 100, with the heartbeat's
  /// own.
  private static let most = 90

  private var waiters: [Waiter] = []
  /// When the pings of the last 10 s were sent.
  private var times: [LinkInstant] = []

  /// Sends a ping. Throws if the link cannot send one, or if there were too many.
  mutating func ping(
    over link: Link, at now: LinkInstant, _ completion: @escaping Completion
  ) throws(LongLinkError) {
    guard link.connection.framing.canProbe else {
      throw LongLinkError(
        .unsupported, doing: "ping", detail: "the dialect does not answer a client's pings",
        peer: link.peer)
    }
    times.removeAll { now - $0 >= Wire.pingWindow }
    guard times.count < Self.most else {
      throw LongLinkError(
        .overloaded, doing: "ping", detail: "\(Self.most) within 10 s", peer: link.peer)
    }
    times.append(now)
    waiters.append(Waiter(id: link.ping(), link: link, completion: completion))
  }

  /// Takes the completion of the ping that got this pong; nil if it was the heartbeat's ping.
  mutating func take(_ id: UInt64, on link: Link) -> Completion? {
    waiters.firstIndex { $0.id == id && $0.link === link }
      .map { waiters.remove(at: $0).completion }
  }

  /// Takes the completions of all pings that wait for pongs on a link.
  mutating func takeAll(on link: Link) -> [Completion] {
    let taken = waiters.filter { $0.link === link }
    waiters.removeAll { $0.link === link }
    return taken.map(\.completion)
  }
}
