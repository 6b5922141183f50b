// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTransport
internal import Logging
internal import NIOCore
internal import Synchronization

/// Counters of a gateway since it was made.
public struct HTTPGatewayCounters: Equatable, Sendable {
  /// The connections that were accepted.
  public var connectionsAccepted: UInt64 = 0
  /// The connections that were closed at once: all others ran requests, too many were closing to
  /// make room, or the gateway was shutting down.
  public var connectionsTurnedAway: UInt64 = 0
  /// The connections that were closed to make room for newer ones, while they ran no request that
  /// the server had accepted.
  public var connectionsEvicted: UInt64 = 0
  /// The connections that are open now.
  public var openConnections = 0
  /// The requests that were handed to the server.
  public var requests: UInt64 = 0
  /// The requests that were refused with a status such as 404 or 503. They do not include invalid
  /// HTTP, which `badRequests` counts.
  public var refusals: UInt64 = 0
  /// The connections that sent no valid HTTP, or heads that are too large.
  public var badRequests: UInt64 = 0
  /// The connections that were closed because the client was too slow or silent.
  public var timeouts: UInt64 = 0
}

/// The state that all connections of a gateway share.
final class GatewayState: Sendable {
  private struct Shared {
    var counters = HTTPGatewayCounters()
    var places: GatewayPlaces<any Channel>
    var isDraining = false
    var onEmpty: EventLoopPromise<Void>?
  }

  let server: LongLinkServer
  let path: String
  let forwarded: ForwardedAddress
  let isSecuredByProxy: Bool
  let headTimeout: TimeAmount
  let keepAliveTimeout: TimeAmount
  let idleTimeout: TimeAmount
  /// The most time for the rest of a request that is already answered or refused.
  let discardTimeout: TimeAmount
  private let maxConnections: Int
  private let log: PeerLog
  private let shared: Mutex<Shared>

  init(_ configuration: HTTPGatewayConfiguration, _ server: LongLinkServer) {
    self.server = server
    path = configuration.path
    forwarded = ForwardedAddress(
      trusting: configuration.trustedProxies, in: configuration.forwardedHeader)
    isSecuredByProxy = configuration.isSecuredByProxy
    headTimeout = .nanoseconds(configuration.headTimeout.clampedNanoseconds)
    keepAliveTimeout = .nanoseconds(configuration.keepAliveTimeout.clampedNanoseconds)
    idleTimeout = .nanoseconds(configuration.idleTimeout.clampedNanoseconds)
    discardTimeout = min(.seconds(5), headTimeout)
    maxConnections = configuration.maxConnections
    log = PeerLog(configuration.logger)
    shared = Mutex(Shared(places: GatewayPlaces(limit: configuration.maxConnections)))
  }

  var counters: HTTPGatewayCounters { shared.withLock(of: self) { $0.counters } }

  func count(_ change: @Sendable (inout HTTPGatewayCounters) -> Void) {
    shared.withLock(of: self) { change(&$0.counters) }
  }

  /// Registers a new connection, and returns its number. At the limit, the oldest connection
  /// without a request makes room. Nil if there is none, or if the gateway shuts down.
  func admit(_ channel: any Channel) -> UInt64? {
    let (admission, isDraining) = shared.withLock(of: self) { shared in
      guard !shared.isDraining, let admission = shared.places.admit(channel) else {
        shared.counters.connectionsTurnedAway += 1
        return (GatewayPlaces<any Channel>.Admission?.none, shared.isDraining)
      }
      shared.counters.connectionsAccepted += 1
      shared.counters.openConnections += 1
      if admission.evicted != nil { shared.counters.connectionsEvicted += 1 }
      return (admission, false)
    }
    if let evicted = admission?.evicted {
      note("Closed the oldest connection without a request, to make room", evicted)
      evicted.close(promise: nil)
    } else if admission == nil, !isDraining {
      note("Turned away a connection, since all others run requests", channel)
    }
    return admission?.id
  }

  private func note(_ message: StaticString, _ channel: any Channel) {
    let peer = address(channel.remoteAddress)
    // Behind a proxy all clients have one address, so warnings are not limited by address.
    let group = forwarded.isProxy(peer) ? nil : peer?.group
    log.log(.warning, message, of: group, at: .now) {
      [
        "peer": "\(peer.map(String.init(describing:)) ?? "unknown")",
        "maxConnections": "\(maxConnections)",
      ]
    }
  }

  /// Records that the server has accepted the client of a request: until the answer, the connection
  /// makes no room. Returns false if it was closed before, for example to make room.
  func opened(_ id: UInt64, request number: Int) -> Bool {
    shared.withLock(of: self) { $0.places.opened(id, request: number) }
  }

  /// Whether the server has accepted the client of a connection's last request.
  func wasOpened(_ id: UInt64, request number: Int) -> Bool {
    shared.withLock(of: self) { $0.places.wasOpened(id, request: number) }
  }

  /// Records that the client's system has the whole answer.
  func answered(_ id: UInt64, request number: Int) {
    shared.withLock(of: self) { $0.places.answered(id, request: number) }
  }

  func ended(_ id: UInt64) {
    let onEmpty = shared.withLock(of: self) { shared -> EventLoopPromise<Void>? in
      guard shared.places.remove(id) else { return nil }
      shared.counters.openConnections -= 1
      return shared.places.isEmpty ? shared.onEmpty.take() : nil
    }
    onEmpty?.succeed()
  }

  /// Refuses new connections, and completes `onEmpty` once none is left. Returns the open ones.
  func drain(_ onEmpty: EventLoopPromise<Void>) -> [any Channel] {
    let open = shared.withLock(of: self) { shared in
      shared.isDraining = true
      if !shared.places.isEmpty { shared.onEmpty = onEmpty }
      return shared.places.owners
    }
    if open.isEmpty { onEmpty.succeed() }
    return open
  }

  /// Converts the address of a socket from swift-nio; nil for a Unix-domain socket.
  func address(_ address: NIOCore.SocketAddress?) -> LongLinkTransport.SocketAddress? {
    guard let address, let host = address.ipAddress, let port = address.port else { return nil }
    return LongLinkTransport.SocketAddress(literal: host, port: UInt16(clamping: port))
  }
}

extension LinkInstant {
  /// The current time on swift-nio's clock.
  fileprivate static var now: LinkInstant {
    LinkInstant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
  }
}
#endif
