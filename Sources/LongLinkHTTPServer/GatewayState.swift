// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkServer
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// What a gateway has counted.
public struct HTTPGatewayCounters: Equatable, Sendable {
  /// The connections that were accepted.
  public var connectionsAccepted: UInt64 = 0
  /// The connections that were closed at once, because there were too many.
  public var connectionsTurnedAway: UInt64 = 0
  /// The connections that are open.
  public var openConnections = 0
  /// The requests that were handed to the server.
  public var requests: UInt64 = 0
  /// The requests that were answered with another status than 200.
  public var refusals: UInt64 = 0
  /// The connections that sent no valid HTTP, or heads that are too large.
  public var badRequests: UInt64 = 0
  /// The connections that were closed because the client was too slow or silent.
  public var timeouts: UInt64 = 0
}

/// What all connections of a gateway share.
final class GatewayState: Sendable {
  private struct Shared {
    var counters = HTTPGatewayCounters()
    var channels: [ObjectIdentifier: any Channel] = [:]
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
  /// The most time for the rest of a request that is answered.
  let discardTimeout: TimeAmount
  private let maxConnections: Int
  private let shared = Mutex(Shared())

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
  }

  var counters: HTTPGatewayCounters { shared.withLock(of: self) { $0.counters } }

  func count(_ change: @Sendable (inout HTTPGatewayCounters) -> Void) {
    shared.withLock(of: self) { change(&$0.counters) }
  }

  /// Registers a new connection; false if there are too many, or the gateway shuts down.
  func admit(_ channel: any Channel) -> Bool {
    shared.withLock(of: self) { shared in
      guard !shared.isDraining, shared.channels.count < maxConnections else {
        shared.counters.connectionsTurnedAway += 1
        return false
      }
      shared.channels[ObjectIdentifier(channel)] = channel
      shared.counters.connectionsAccepted += 1
      shared.counters.openConnections += 1
      return true
    }
  }

  func ended(_ channel: any Channel) {
    let onEmpty = shared.withLock(of: self) { shared -> EventLoopPromise<Void>? in
      guard shared.channels.removeValue(forKey: ObjectIdentifier(channel)) != nil else {
        return nil
      }
      shared.counters.openConnections -= 1
      return shared.channels.isEmpty ? shared.onEmpty.take() : nil
    }
    onEmpty?.succeed()
  }

  /// Takes no new connections, and completes `onEmpty` once there is none. Returns the open ones.
  func drain(_ onEmpty: EventLoopPromise<Void>) -> [any Channel] {
    let open = shared.withLock(of: self) { shared in
      shared.isDraining = true
      if !shared.channels.isEmpty { shared.onEmpty = onEmpty }
      return Array(shared.channels.values)
    }
    if open.isEmpty { onEmpty.succeed() }
    return open
  }

  /// The address of a socket, in the framework's form.
  func address(_ address: NIOCore.SocketAddress?) -> LongLinkTransport.SocketAddress? {
    guard let address, let host = address.ipAddress, let port = address.port else { return nil }
    return LongLinkTransport.SocketAddress(literal: host, port: UInt16(clamping: port))
  }
}
#endif
