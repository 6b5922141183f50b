// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLinkTestSupport
import NIOCore
import NIOPosix

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

  /// Connects to a port of this machine. Without `reads`, it takes nothing, into small buffers.
  /// With `staysOpen`, it does not close when the other side has.
  static func connect(
    to port: Int, reads: Bool = true, staysOpen: Bool = false
  ) async throws -> RawPeer {
    let made = Watched<RawPeer?>(nil)
    _ = try await ClientBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .channelOption(.autoRead, value: reads)
      .channelOption(.allowRemoteHalfClosure, value: staysOpen)
      .channelOption(.socketOption(.so_rcvbuf), value: reads ? 262_144 : 2_048)
      .channelInitializer { channel in
        let peer = RawPeer(channel)
        made.change { $0 = peer }
        return channel.pipeline.addHandler(Listening(peer))
      }
      .connect(host: "127.0.0.1", port: port).get()
    return await made.until { $0 != nil }!
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
  }

  func close() { channel.close(promise: nil) }

  /// Says that nothing more is sent.
  func endOutput() { channel.close(mode: .output, promise: nil) }

  /// Waits until the peer has said something, or has closed.
  @discardableResult
  func hears(_ text: String, times: Int = 1) async -> String {
    await heard.until {
      $0.isClosed || $0.text.split(separator: text, omittingEmptySubsequences: false).count > times
    }.text
  }

  /// Waits until the other side has closed, and returns what it said.
  @discardableResult
  func hearsEnd() async -> String { await heard.until { $0.isClosed }.text }
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
