// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import NIOCore
import NIOPosix

struct Serve: AsyncParsableCommand {
  @Option(help: "The style of the server.")
  var style = NIOPeer.Style.handlers

  func run() async throws {
    let requests = RequestCount()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 4_096)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
    switch style {
    case .handlers:
      let channel = try await bootstrap.childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers(FrameCodec(), EchoHandler(requests))
        }
      }.bind(host: "127.0.0.1", port: 0).get()
      Serving.listening(on: UInt16(channel.localAddress!.port!))
    case .asynchronous:
      let channel = try await bootstrap.bind(host: "127.0.0.1", port: 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(FrameCodec())
          return try NIOAsyncChannel<Frame, Frame>(wrappingChannelSynchronously: channel)
        }
      }
      Serving.listening(on: UInt16(channel.channel.localAddress!.port!))
      Task { try await serve(channel, requests) }
    }
    Serving.waitForTheEnd { requests.value }
  }

  private func serve(
    _ listener: NIOAsyncChannel<NIOAsyncChannel<Frame, Frame>, Never>, _ requests: RequestCount
  ) async throws {
    try await withThrowingDiscardingTaskGroup { group in
      try await listener.executeThenClose { connections in
        for try await connection in connections {
          group.addTask {
            try? await connection.executeThenClose { inbound, outbound in
              for try await frame in inbound {
                requests.oneMore()
                try await outbound.write(answer(to: frame))
              }
            }
          }
        }
      }
    }
  }
}

private func answer(to frame: Frame) -> Frame {
  Frame(type: 0x01 << 24 | 200, serial: frame.serial, body: frame.body)
}

private final class EchoHandler: ChannelInboundHandler {
  typealias InboundIn = Frame
  typealias OutboundOut = Frame

  private let requests: RequestCount

  init(_ requests: RequestCount) { self.requests = requests }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    requests.oneMoreOnOneThread()
    context.write(wrapOutboundOut(answer(to: unwrapInboundIn(data))), promise: nil)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.flush()
  }
}
