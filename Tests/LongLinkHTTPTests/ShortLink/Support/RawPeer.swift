// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkTestSupport
import NIOCore
import NIOPosix
import Synchronization

/// A peer that speaks whatever a test lets it say, over TCP.
final class RawPeer: Sendable {
  struct Heard: Sendable {
    var bytes: [UInt8] = []
    var isClosed = false

    var text: String { String(decoding: bytes, as: UTF8.self) }
  }

  let heard = Watched(Heard())
  let channel: any Channel

  private init(_ channel: any Channel) {
    self.channel = channel
  }

  /// Connects to a port of this machine. It reads on its own, unless `reads` is false.
  static func connect(to port: Int, reads: Bool = true) async throws -> RawPeer {
    let made = Watched<RawPeer?>(nil)
    _ = try await ClientBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .channelOption(.autoRead, value: reads)
      .channelInitializer { channel in
        let peer = RawPeer(channel)
        made.change { $0 = peer }
        return channel.pipeline.addHandler(Listening(peer))
      }
      .connect(host: "127.0.0.1", port: port).get()
    return await made.until { $0 != nil }!
  }

  /// Listens on a free port, and hands each connection to `accept`. Close the channel at the end.
  static func listen(_ accept: @escaping @Sendable (RawPeer) -> Void) async throws -> any Channel {
    try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        let peer = RawPeer(channel)
        return channel.pipeline.addHandler(Listening(peer)).map { accept(peer) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  func send(_ text: String) {
    channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
  }

  func send(_ bytes: [UInt8]) {
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
  }

  func close() {
    channel.close(promise: nil)
  }

  /// Waits until the peer has said something, or has closed.
  @discardableResult
  func hears(_ text: String) async -> String {
    await heard.until { $0.isClosed || $0.text.contains(text) }.text
  }

  /// Waits until the other side has closed, and returns what it said.
  @discardableResult
  func hearsEnd() async -> String {
    await heard.until { $0.isClosed }.text
  }
}

private final class Listening: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer

  private let peer: RawPeer

  init(_ peer: RawPeer) {
    self.peer = peer
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = Array(unwrapInboundIn(data).readableBytesView)
    peer.heard.change { $0.bytes += bytes }
  }

  func channelInactive(context: ChannelHandlerContext) {
    peer.heard.change { $0.isClosed = true }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
#endif
