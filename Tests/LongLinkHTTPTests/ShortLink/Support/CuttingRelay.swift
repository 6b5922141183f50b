// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkTestSupport
import NIOCore
import NIOPosix
import Synchronization

/// A relay in front of a port that breaks each connection off at a byte, counted in the direction
/// from the client or towards it; or that drops the rest of a request once its response has begun,
/// as the reverse proxies of Go do.
final class CuttingRelay: Sendable {
  let port: Int
  /// The bytes of either direction that have passed on the last connection.
  let passed = Watched((up: 0, down: 0))
  private let listener: any Channel

  private init(_ listener: any Channel) {
    self.listener = listener
    port = listener.localAddress?.port ?? 0
  }

  /// Relays until `up` bytes have gone to the server, or `down` have come from it; nil for no cut.
  /// With `dropsBehindAnswer`, nothing more goes up once something has come down.
  static func start(
    to port: Int, up: Int? = nil, down: Int? = nil, dropsBehindAnswer: Bool = false
  ) async throws -> CuttingRelay {
    let made = Watched<CuttingRelay?>(nil)
    let group = NIOSingletons.posixEventLoopGroup
    let listener = try await ServerBootstrap(group: group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { client in
        let relay = made.value
        return ClientBootstrap(group: client.eventLoop)
          .channelOption(.autoRead, value: false)
          .connect(host: "127.0.0.1", port: port)
          .flatMapThrowing { server in
            // Both are on one thread.
            try client.pipeline.syncOperations.addHandler(
              Passing(to: server, limit: up) { count in
                relay?.passed.change { $0.up += count }
                return !dropsBehindAnswer || relay?.passed.value.down == 0
              })
            try server.pipeline.syncOperations.addHandler(
              Passing(to: client, limit: down) { count in
                relay?.passed.change { $0.down += count }
                return true
              })
            for channel in [client, server] {
              channel.setOption(.autoRead, value: true).whenComplete { _ in }
            }
          }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let relay = CuttingRelay(listener)
    made.change { $0 = relay }
    return relay
  }

  func stop() async throws {
    try await listener.close()
  }
}

/// Passes one direction on, up to a limit, at which both connections end.
private final class Passing: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let target: any Channel
  private var left: Int?
  /// Counts bytes, and says whether they may pass.
  private let count: @Sendable (Int) -> Bool

  init(to target: any Channel, limit: Int?, _ count: @escaping @Sendable (Int) -> Bool) {
    self.target = target
    left = limit
    self.count = count
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if let left, bytes.readableBytes >= left {
      let rest = bytes.readSlice(length: left) ?? ByteBuffer()
      _ = count(left)
      self.left = 0
      let channel = context.channel
      target.writeAndFlush(rest).whenComplete { [target] _ in
        target.close(promise: nil)
        channel.close(promise: nil)
      }
      return
    }
    if let left { self.left = left - bytes.readableBytes }
    if count(bytes.readableBytes) { target.writeAndFlush(bytes, promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    target.close(promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
#endif
