// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkHTTP
import NIOCore
import Synchronization
import Testing

extension HTTPTests {
  /// Servers of HTTP/2 that open connections, and take no request on them.
  @Suite(.timeLimit(.minutes(5))) struct UnusableServerTests {
    /// Allows no streams, and goes away.
    private final class Leaving: ChannelInboundHandler {
      typealias InboundIn = ByteBuffer
      typealias OutboundOut = ByteBuffer

      private let connects: Counter
      private let saysGoodbye: Bool
      private var hasSent = false

      init(_ connects: Counter, saysGoodbye: Bool) {
        self.connects = connects
        self.saysGoodbye = saysGoodbye
      }

      func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasSent else { return }
        hasSent = true
        connects.value.add(1, ordering: .relaxed)
        // SETTINGS with MAX_CONCURRENT_STREAMS of 0, and GOAWAY before the first stream.
        var frames: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]
        if saysGoodbye { frames += [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: frames)), promise: nil)
        if !saysGoodbye { context.close(promise: nil) }
      }

      func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
      }
    }

    @Test(arguments: [true, false])
    func `a server that takes no request is connected to a bounded number of times`(
      _ saysGoodbye: Bool
    ) async throws {
      let connects = Counter()
      try await SecureServer.run(
        protocols: ["h2"], makeHandler: { Leaving(connects, saysGoodbye: saysGoodbye) }
      ) { port in
        var configuration = HTTPConfiguration(tls: SecureServer.roots)
        configuration.connectionsPerServer = 2
        try await withService(configuration) { service in
          for count in 1...3 {
            let error = try await linkFailure {
              try await service.send(HTTPRequest(.get, "https://127.0.0.1:\(port)/"))
            }
            #expect(error.code == .connectFailed && error.delivery == .notSent, "\(error)")
            #expect(error.detail.contains("took no request"), "\(error)")
            #expect(connects.value.load(ordering: .relaxed) == 13 * count)
          }
        }
      }
    }
  }
}
#endif
