// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOCore
internal import NIOHTTP2
internal import Synchronization

/// Bounds the HTTP/2 connections on which no request can begin, because the server allows no
/// streams or goes away at once.
///
/// While requests wait, async-http-client replaces such a connection without a pause, and no
/// failure ends that before the requests' own time is over. So the last of too many such
/// connections in a row fails, and with it the requests that wait.
final class UnusedConnections: Sendable {
  private let limit: Int
  private let mostAddresses = 1_024
  private let counts = Mutex<[NIOCore.SocketAddress: Int]>([:])

  /// Allows `limit` connections to one address in a row. Some may be unused because several were
  /// begun at once, and the first one takes all requests.
  init(limit: Int) {
    self.limit = limit
  }

  /// Counts a connection that the server has opened. The returned future is complete: it fails if
  /// the connection is one too many, which then closes.
  func opened(_ channel: any Channel) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      if isTooMany(channel.remoteAddress) {
        // Closes the connection after async-http-client has got the failure.
        channel.eventLoop.execute { channel.close(promise: nil) }
        throw HTTPFailure.unusable(limit + 1)
      }
      try channel.pipeline.syncOperations.addHandler(LeftConnection())
    }
  }

  private func isTooMany(_ address: NIOCore.SocketAddress?) -> Bool {
    guard let address else { return false }
    return counts.withLock(of: self) { counts in
      // If there are many addresses, all counts begin anew.
      if counts.count >= mostAddresses { counts.removeAll() }
      let count = counts[address, default: 0]
      counts[address] = count < limit ? count + 1 : nil
      return count >= limit
    }
  }

  /// Records that a connection is used, because a stream begins on it.
  func isUsed(_ connection: (any Channel)?) {
    guard let address = connection?.remoteAddress else { return }
    counts.withLock(of: self) { _ = $0.removeValue(forKey: address) }
  }
}

/// Closes a connection without streams when the server sends GOAWAY. async-http-client would wait
/// for the server to close it.
private final class LeftConnection: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame
  typealias InboundOut = HTTP2Frame

  private var streams = 0

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is NIOHTTP2StreamCreatedEvent { streams += 1 }
    if event is StreamClosedEvent { streams -= 1 }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .goAway = unwrapInboundIn(data).payload, streams == 0 { context.close(promise: nil) }
    context.fireChannelRead(data)
  }
}
#endif
