// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import NIOCore
import NIOPosix

struct Generate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "load")
  @OptionGroup var load: Load
  @Option(help: "The style of the client.")
  var style = NIOPeer.Style.handlers

  func run() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let bootstrap = ClientBootstrap(group: group)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
    let (load, meter) = (load, Meter(load))
    let all = meter.lanes
    for first in stride(from: 0, to: all.count, by: load.inFlight) {
      let lanes = all[first..<first + load.inFlight]
      switch style {
      case .handlers:
        let channel = try await bootstrap.channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandlers(
              FrameCodec(), Dispatcher())
          }
        }.connect(host: "127.0.0.1", port: Int(load.port)).get()
        try await channel.eventLoop.submit {
          let dispatcher = try channel.pipeline.syncOperations.handler(type: Dispatcher.self)
          for lane in lanes { Caller(dispatcher, lane).call() }
          dispatcher.flush()
        }.get()
      case .asynchronous:
        let channel = try await bootstrap.connect(host: "127.0.0.1", port: Int(load.port)) {
          channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(FrameCodec())
            return try NIOAsyncChannel<Frame, Frame>(wrappingChannelSynchronously: channel)
          }
        }
        try await start(channel, lanes)
      }
    }
    let outcome = await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: meter.measure(load)) }
    }
    try outcome.print()
    Foundation.exit(0)
  }

  private func start(
    _ channel: NIOAsyncChannel<Frame, Frame>, _ lanes: ArraySlice<Lane>
  ) async throws {
    let (started, ready) = AsyncStream.makeStream(of: Exchange.self)
    Task {
      do {
        try await channel.executeThenClose { inbound, outbound in
          let exchange = Exchange(outbound)
          ready.yield(exchange)
          for try await frame in inbound { await exchange.answered(frame) }
        }
      } catch {
        Meter.fail("\(error)")
      }
    }
    for await exchange in started {
      for lane in lanes { Task { try await converse(exchange, lane) } }
      return
    }
  }
}

private func converse(_ exchange: Exchange, _ lane: Lane) async throws {
  let body = ByteBuffer(bytes: lane.body)
  while true {
    let request = lane.begin()
    let answer = try await exchange.request(body)
    guard answer.withUnsafeReadableBytes({ lane.answered(request, with: $0) }) else { return }
  }
}

/// Requests by serial, written like a typical service.
private actor Exchange {
  private let outbound: NIOAsyncChannelOutboundWriter<Frame>
  private var waiting: [UInt32: CheckedContinuation<ByteBuffer, any Error>] = [:]
  private var nextSerial: UInt32 = 50

  init(_ outbound: NIOAsyncChannelOutboundWriter<Frame>) {
    self.outbound = outbound
  }

  func request(_ body: ByteBuffer) async throws -> ByteBuffer {
    let serial = nextSerial
    nextSerial = nextSerial == 0x7FFF_FFFF ? 50 : nextSerial + 1
    return try await withCheckedThrowingContinuation { continuation in
      waiting[serial] = continuation
      Task { try await outbound.write(Frame(type: 1, serial: serial, body: body)) }
    }
  }

  func answered(_ frame: Frame) {
    waiting.removeValue(forKey: frame.serial)?.resume(returning: frame.body)
  }
}

/// Promises by serial; on the channel's event loop.
private final class Dispatcher: ChannelInboundHandler {
  typealias InboundIn = Frame
  typealias OutboundOut = Frame

  private var context: ChannelHandlerContext!
  private var waiting: [UInt32: EventLoopPromise<ByteBuffer>] = [:]
  private var nextSerial: UInt32 = 50

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func request(_ body: ByteBuffer) -> EventLoopFuture<ByteBuffer> {
    let promise = context.eventLoop.makePromise(of: ByteBuffer.self)
    let serial = nextSerial
    nextSerial = nextSerial == 0x7FFF_FFFF ? 50 : nextSerial + 1
    waiting[serial] = promise
    context.write(wrapOutboundOut(Frame(type: 1, serial: serial, body: body)), promise: nil)
    return promise.futureResult
  }

  func flush() { context.flush() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    waiting.removeValue(forKey: frame.serial)?.succeed(frame.body)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.flush()
  }
}

/// Sends a request when the previous one has ended; on the event loop.
private final class Caller {
  private let dispatcher: Dispatcher
  private let lane: Lane
  private let body: ByteBuffer

  init(_ dispatcher: Dispatcher, _ lane: Lane) {
    self.dispatcher = dispatcher
    self.lane = lane
    body = ByteBuffer(bytes: lane.body)
  }

  func call() {
    let request = lane.begin()
    dispatcher.request(body).assumeIsolated().whenSuccess { answer in
      let continues = answer.withUnsafeReadableBytes { bytes in
        self.lane.answered(request, with: bytes)
      }
      if continues { self.call() }
    }
  }
}
