// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
public import LongLinkDriver
public import LongLinkServer
public import LongLinkTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A port on which people and programs watch and operate a server, over HTTP.
///
/// ```swift
/// let operations = try OperationsPort(for: server)
/// let address = try await operations.start()
/// try await server.start()
/// ```
///
/// It works on a thread of its own, and answers also while the server's loops and the threads of
/// Swift's tasks hang: after a second it answers without what a loop owes. It ends with the server,
/// when the last connection has ended: also if the server is shut down without having started, and
/// if `run` cannot start it. It may be used from any thread.
public final class OperationsPort: Sendable {
  private enum Phase {
    case made
    case starting
    case started(any Channel, NIOLoopBound<PortCore>)
    case shutDown
  }

  /// The configuration that the port was made with.
  public let configuration: OperationsConfiguration
  private let server: LongLinkServer
  let watch: ServerWatch
  private let phase = Mutex(Phase.made)

  /// Makes a port for `server`, which is not started yet and has no other port; otherwise it traps.
  /// From its start on the server keeps records of requests and connections, and writes recordings,
  /// also if the port is never started. Throws `invalidConfiguration`.
  public init(
    for server: LongLinkServer, _ configuration: OperationsConfiguration = .init(),
    fileID: StaticString = #fileID, line: UInt = #line
  ) throws(LongLinkError) {
    try configuration.validate()
    self.configuration = configuration
    self.server = server
    watch = ServerWatch(
      server, methods: configuration.methods,
      recordings: server.configuration.recorderBytes > 0 ? RecordingFiles(configuration) : nil)
    server.setWatch(watch, fileID: fileID, line: line)
  }

  /// Starts to listen, and returns the address, with the actual port. Start the port before the
  /// server, so that it can tell that the server is starting.
  ///
  /// Throws `connectFailed` with the system's error if it cannot listen, and `closed` if it is
  /// running already or was shut down, or if its server was. It cannot watch a server in a
  /// simulation.
  @discardableResult
  public func start() async throws(LongLinkError) -> LongLinkTransport.SocketAddress {
    try begin()
    let thread = PortThread()
    let core: NIOLoopBound<PortCore>
    let listener: any Channel
    do {
      core = try await thread.loop.submit { [server, watch, configuration] in
        NIOLoopBound(PortCore(server, watch, configuration, on: thread), eventLoop: thread.loop)
      }.get()
      listener = try await bootstrap(thread, core)
        .bind(host: configuration.host, port: configuration.port).get()
    } catch {
      _ = watch.whenServerEnds(nil)
      let isOver = phase.withLock { phase in
        guard case .starting = phase else { return true }
        phase = .made
        return false
      }
      if isOver { throw Self.misuse }
      let number = (error as? IOError)?.errnoCode
      throw LongLinkError(
        .connectFailed, doing: .other("listen on \(configuration.host):\(configuration.port)"),
        detail: number.map { SocketError.text(of: $0) } ?? "\(error)", systemError: number)
    }
    let isWanted = phase.withLock { phase in
      guard case .starting = phase else { return false }
      phase = .started(listener, core)
      return true
    }
    guard isWanted, let address = listener.localAddress.flatMap(Self.address) else {
      await stop(listener, core)
      throw Self.misuse
    }
    try? await thread.loop.submit { core.value.start() }.get()
    // The server may have ended meanwhile.
    guard isStarted else { throw Self.misuse }
    configuration.logger.info("Listening for operators", metadata: ["address": "\(address)"])
    return address
  }

  /// Begins to start. From here on the end of the server ends the port.
  private func begin() throws(LongLinkError) {
    let begins = phase.withLock { phase in
      guard case .made = phase, !server.isSimulated else { return false }
      phase = .starting
      return true
    }
    guard begins else { throw Self.misuse }
    guard watch.whenServerEnds({ [self] in await shutDown() }) else {
      phase.withLock { $0 = .shutDown }
      throw Self.misuse
    }
  }

  private var isStarted: Bool {
    phase.withLock { if case .started = $0 { true } else { false } }
  }

  private static let misuse = LongLinkError(
    .closed, doing: .other("start the operations port"),
    detail: "it is running, or it or its server was shut down, or its server is in a simulation")

  private func bootstrap(
    _ thread: PortThread, _ core: NIOLoopBound<PortCore>
  ) -> ServerBootstrap {
    ServerBootstrap(group: thread.group)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptReserve())
        }
      }
      .serverChannelOption(.backlog, value: 64)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // For the connections, which inherit it: the system's memory for requests that are not read.
      .serverChannelOption(.socketOption(.so_rcvbuf), value: .init(PortLimits.receiveBuffer))
      // What has come on a connection is read before another one can take its place.
      .serverChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.autoRead, value: false)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: PortLimits.readSize)
      )
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      // What a client does not read takes little of the system's memory, and is soon noticed.
      .childChannelOption(.socketOption(.so_sndbuf), value: .init(PortLimits.sendBuffer))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          // It was accepted before the port was stopped. The error closes it.
          if core.value.isStopped { throw Self.misuse }
          try PortHandler.set(up: channel, core.value)
        }
      }
  }

  /// The address that the port listens on, with the actual port; nil before `start`.
  public var address: LongLinkTransport.SocketAddress? {
    guard case .started(let listener, _) = phase.withLock({ $0 }) else { return nil }
    return listener.localAddress.flatMap(Self.address)
  }

  /// Stops listening, and closes all connections of the port. The end of the server does that too.
  public func shutDown() async {
    let started = phase.withLock { phase -> (any Channel, NIOLoopBound<PortCore>)? in
      defer { phase = .shutDown }
      guard case .started(let listener, let core) = phase else { return nil }
      return (listener, core)
    }
    watch.end()
    if let (listener, core) = started { await stop(listener, core) }
  }

  private func stop(_ listener: any Channel, _ core: NIOLoopBound<PortCore>) async {
    try? await listener.close()
    try? await core.eventLoop.submit { core.value.stop() }.get()
  }

  /// Converts the address of a socket from swift-nio; nil for a Unix-domain socket.
  static func address(_ address: NIOCore.SocketAddress) -> LongLinkTransport.SocketAddress? {
    guard let host = address.ipAddress, let port = address.port else { return nil }
    return self.address(host, UInt16(clamping: port))
  }

  /// The address with an IPv4 address in place of one that an IPv6 socket shows for it.
  static func address(_ host: String, _ port: UInt16) -> LongLinkTransport.SocketAddress? {
    let mapped = "::ffff:"
    let plain =
      host.hasPrefix(mapped) && host.contains(".") ? host.dropFirst(mapped.count) : host[...]
    return LongLinkTransport.SocketAddress(literal: String(plain), port: port)
  }
}

/// The thread of a port. It ends when the port, its connections and the loops that owe it an answer
/// have released this object.
final class PortThread: Sendable {
  let group: MultiThreadedEventLoopGroup
  let loop: any NIOCore.EventLoop

  init() {
    group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    loop = group.next()
  }

  deinit {
    group.shutdownGracefully { _ in }
  }
}
#endif
