// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCLibrary
internal import NIOCore

/// Keeps the port reachable when the process has no descriptors left, which is when an operator
/// wants to look at it.
///
/// A descriptor that is kept for this lets one more client in. If it is in use, the listener rests
/// for 100 ms; swift-nio would look again at once, for ever.
final class AcceptReserve: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let rest = TimeAmount.milliseconds(100)
  private var spare = SpareDescriptor()

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (error as? IOError)?.errnoCode {
    case EMFILE, ENFILE:
      guard spare == nil else {
        // The listener accepts again at once.
        spare = nil
        return
      }
    case ENOBUFS, ENOMEM: break
    default: return context.fireErrorCaught(error)
    }
    let channel = context.channel
    try? channel.syncOptions?.setOption(.autoRead, value: false)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.rest) {
      try? channel.syncOptions?.setOption(.autoRead, value: true)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    fill()
    unwrapInboundIn(data).closeFuture.assumeIsolated().whenComplete { _ in self.fill() }
    context.fireChannelRead(data)
  }

  private func fill() {
    if spare == nil { spare = SpareDescriptor() }
  }
}

/// A descriptor that is of no use but to be closed, when another one is needed.
private final class SpareDescriptor {
  private let number: CInt

  init?() {
    let opened = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    number = opened
  }

  deinit { close(number) }
}
#endif
