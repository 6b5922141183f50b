// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOCore
internal import NIOHTTP2
internal import Synchronization

/// Bounds the connections over HTTP/2 on which no request can begin, because the server allows no
/// streams or goes away at once.
///
/// While requests wait, the client below replaces such a connection without a pause, and no failure
/// ends that before the requests' own time is over. So the last connection of too many in a row
/// fails, and with it the requests that wait.
final class UnusedConnections: Sendable {
  private let limit: Int
  private let mostAddresses = 1_024
  private let counts = Mutex<[NIOCore.SocketAddress: Int]>([:])

  /// Allows so many connections to one address in a row. Some may be unused because several were
  /// begun at once, and the first one takes all requests.
  init(limit: Int) {
    self.limit = limit
  }

  /// Counts a connection that the server has opened. The future, which is ready, fails if the
  /// connection is one too many; it then ends.
  func opened(_ channel: any Channel) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      if isTooMany(channel.remoteAddress) {
        // Once the client has heard of the failure.
        channel.eventLoop.execute { channel.close(promise: nil) }
        throw HTTPFailure.unusable(limit + 1)
      }
      try channel.pipeline.syncOperations.addHandler(LeftConnection())
    }
  }

  private func isTooMany(_ address: NIOCore.SocketAddress?) -> Bool {
    guard let address else { return false }
    return counts.withLock(of: self) { counts in
      // Where addresses are many, each has to be counted only for a while.
      if counts.count >= mostAddresses { counts.removeAll() }
      let count = counts[address, default: 0]
      counts[address] = count < limit ? count + 1 : nil
      return count >= limit
    }
  }

  /// Counts a connection as used, because a stream of it begins.
  func isUsed(_ connection: (any Channel)?) {
    guard let address = connection?.remoteAddress else { return }
    counts.withLock(of: self) { _ = $0.removeValue(forKey: address) }
  }
}

/// Ends a connection that the server leaves while it has no streams. The client below waits for the
/// server to do so.
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
