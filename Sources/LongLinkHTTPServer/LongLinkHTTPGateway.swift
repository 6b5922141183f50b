// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver
public import LongLinkServer
public import LongLinkTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// Accepts a server's requests over HTTP: each is one `POST`, with frames in both bodies.
///
/// Make it for a server, start both, and shut the gateway down before the server. The server's
/// routes, limits and deadlines hold for its requests. Releasing a gateway does not stop it. It may
/// be used from any thread.
public final class LongLinkHTTPGateway: Sendable {
  private enum Phase {
    case made
    case started(any Channel, GatewayThreads)
    case shutDown
  }

  /// The configuration that the gateway was made with.
  public let configuration: HTTPGatewayConfiguration
  private let state: GatewayState
  private let phase = Mutex(Phase.made)

  /// Makes a gateway for `server`; it does not listen yet. Throws `invalidConfiguration`, with the
  /// field's name, if a value is out of range.
  public init(
    for server: LongLinkServer, _ configuration: HTTPGatewayConfiguration = .init()
  ) throws(LongLinkError) {
    try configuration.validate()
    self.configuration = configuration
    state = GatewayState(configuration, server)
  }

  /// Starts to listen, and returns the address, with the actual port.
  ///
  /// Throws `connectFailed` with the system's error if it cannot listen, and `closed` if it is
  /// running already or was shut down.
  @discardableResult
  public func start() async throws(LongLinkError) -> LongLinkTransport.SocketAddress {
    guard case .made = phase.withLock({ $0 }) else { throw Self.closed }
    let threads = GatewayThreads(configuration.threads)
    let listener: any Channel
    do {
      listener = try await bootstrap(threads).bind(
        host: configuration.host, port: configuration.port
      ).get()
    } catch {
      let number = (error as? IOError)?.errnoCode
      throw LongLinkError(
        .connectFailed, doing: listening,
        detail: number.map { SocketError.text(of: $0) } ?? "\(error)", systemError: number)
    }
    return try await begin(listener, threads)
  }

  /// Takes a socket that listens, or closes it if it has no IP address or comes too late.
  func begin(
    _ listener: any Channel, _ threads: GatewayThreads
  ) async throws(LongLinkError) -> LongLinkTransport.SocketAddress {
    guard let address = state.address(listener.localAddress) else {
      try? await listener.close()
      throw LongLinkError(
        .connectFailed, doing: listening, detail: "the socket has no IP address")
    }
    let isFirst = phase.withLock(of: self) { phase in
      guard case .made = phase else { return false }
      phase = .started(listener, threads)
      return true
    }
    guard isFirst else {
      try? await listener.close()
      throw Self.closed
    }
    configuration.logger.info("Listening for HTTP", metadata: ["address": "\(address)"])
    return address
  }

  private var listening: LongLinkError.Operation {
    .other("listen on \(configuration.host):\(configuration.port)")
  }

  private static var closed: LongLinkError {
    LongLinkError(
      .closed, doing: .other("start the gateway"), detail: "it is running, or was shut down")
  }

  /// The address that the gateway listens on, with the actual port; nil before `start`, and after
  /// `shutDown`.
  public var address: LongLinkTransport.SocketAddress? {
    guard case .started(let listener, _) = phase.withLock({ $0 }) else { return nil }
    return state.address(listener.localAddress)
  }

  /// The gateway's counters at this moment.
  public var counters: HTTPGatewayCounters { state.counters }

  private func bootstrap(_ threads: GatewayThreads) -> ServerBootstrap {
    ServerBootstrap(group: threads.group)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.autoRead, value: false)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      // The bytes of one read are parsed at once: 16 KiB of tiny heads become some hundred KiB of
      // memory.
      .childChannelOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(minimum: 1_024, initial: 2_048, maximum: 16_384)
      )
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.socketOption(.so_keepalive), value: 1)
      .childChannelOption(
        .writeBufferWaterMark, value: .init(low: 32_768, high: TransportBridge.capacity)
      )
      .childChannelInitializer { [state, threads] channel in
        channel.eventLoop.makeCompletedFuture {
          guard let id = state.admit(channel) else { throw ChannelError.ioOnClosedChannel }
          channel.closeFuture.whenComplete { _ in state.ended(id) }
          try Self.setUp(channel, GatewayHandler(state, id, threads))
        }
      }
  }

  private static func setUp(_ channel: any Channel, _ handler: GatewayHandler) throws {
    let limits = HTTPGatewayConfiguration.headLimits
    var decoding = NIOHTTPDecoderLimitConfiguration()
    decoding.maxHeaderFieldSize = limits.header
    decoding.maxHeaderListSize = limits.headers
    decoding.maxHeaderFieldCount = limits.count
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(ByteWatch(handler))
    try pipeline.configureHTTPServerPipeline(
      withOutboundHeaderValidation: true, withEncoderConfiguration: .init(),
      withDecoderLimitConfiguration: decoding)
    try pipeline.addHandler(handler)
  }

  /// Stops the gateway, and returns when every connection has ended.
  ///
  /// It accepts no more connections, lets running requests finish within `bound`, and then closes
  /// the connections that are left. If you shut the server down first, requests that come in
  /// between do not run, and are answered with 503. A second call does nothing.
  public func shutDown(within bound: Duration = .seconds(10)) async {
    let started = phase.withLock(of: self) { phase -> (any Channel, GatewayThreads)? in
      defer { phase = .shutDown }
      guard case .started(let listener, let threads) = phase else { return nil }
      return (listener, threads)
    }
    guard let (listener, threads) = started else { return }
    try? await listener.close()
    let loop = threads.group.next()
    let empty = loop.makePromise(of: Void.self)
    let open = state.drain(empty)
    for channel in open {
      channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
    let timer = loop.scheduleTask(in: .nanoseconds(bound.clampedNanoseconds)) {
      for channel in open { channel.close(promise: nil) }
    }
    try? await empty.futureResult.get()
    timer.cancel()
  }
}

/// The threads of a gateway. They end when the gateway, its connections and the server have
/// released this object.
final class GatewayThreads: Sendable {
  let group: MultiThreadedEventLoopGroup

  init(_ count: Int) {
    group = MultiThreadedEventLoopGroup(numberOfThreads: count)
  }

  deinit {
    group.shutdownGracefully { _ in }
  }
}

/// Tells the connection's handler that bytes have come, before they are parsed, and that the
/// gateway shuts down.
private final class ByteWatch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let handler: GatewayHandler

  init(_ handler: GatewayHandler) {
    self.handler = handler
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    handler.bytesCame(unwrapInboundIn(data).readableBytes)
    context.fireChannelRead(data)
  }

  /// Does not pass the event on: swift-nio's own handlers would close the connection too. Closing,
  /// they would answer half a head, and fail an assertion of theirs.
  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent { return handler.drain() }
    context.fireUserInboundEventTriggered(event)
  }
}
#endif
