// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// A server that does what a test tells it to, right or wrong, and remembers what it received.
///
/// It speaks frames and nothing else, so that it can misbehave in any way. It runs on any event
/// loop: over loopback or Unix-domain sockets on a real one, or in a ``Simulation``, where its
/// delays take virtual time. By itself it answers a hello with a welcome and a ping with a pong,
/// and refuses requests of a type that nothing is scripted for with 404.
///
/// ```swift
/// let server = try await SimulatedServer.start(on: loop)
/// server.on(7) { request in .reply(request.body) }
/// server.on(8, .reply(text: "late"), after: .seconds(2))
/// server.on(9, [.never, .reply()])
/// // … a client talks to server.address …
/// let second = try await server.waitForRequest(of: 9, count: 2)
/// await server.stop()
/// ```
///
/// Everything may be called from any thread. Away from the server's loop, orders such as `push` are
/// carried out as soon as the loop gets to them, in the order in which they were given.
public final class SimulatedServer: Sendable {
  /// The loop that the server lives on.
  public let loop: EventLoop
  /// The address that it listens on, with the port that was chosen.
  public let address: SocketAddress

  /// Where clients reach it.
  public var endpoint: Endpoint { Endpoint(address) }

  let engine: LoopBound<ServerEngine>
  let journal: Journal
  let script: Box<Mutex<ServerScript>>

  /// Starts a server, by default on the shared loop and on a free port of 127.0.0.1.
  ///
  /// In a dialect, frames are written and read as it says: kinds, message types and the library's
  /// codes stand for what is on the wire. To send what a dialect has no word for is a programming
  /// error. Throws `SocketError` when it cannot listen there, such as `EADDRINUSE`, and
  /// `invalidConfiguration` for a dialect that does not suit a server.
  public static func start(
    on loop: EventLoop = .shared,
    at address: SocketAddress = .ipv4(127, 0, 0, 1, port: 0),
    dialect: Dialect = .native
  ) async throws -> SimulatedServer {
    try dialect.validate(.server, field: "dialect")
    let journal = Journal()
    let script = Box(Mutex(ServerScript()))
    let started = await loop.perform {
      () -> Result<(LoopBound<ServerEngine>, SocketAddress), SocketError> in
      do throws(SocketError) {
        let engine = try ServerEngine(
          on: loop, at: address, dialect: dialect, script: script, journal: journal)
        return .success((LoopBound(engine, on: loop), engine.address))
      } catch {
        return .failure(error)
      }
    }
    let (engine, bound) = try started.get()
    return SimulatedServer(loop, bound, engine, journal, script)
  }

  private init(
    _ loop: EventLoop,
    _ address: SocketAddress,
    _ engine: LoopBound<ServerEngine>,
    _ journal: Journal,
    _ script: Box<Mutex<ServerScript>>
  ) {
    self.loop = loop
    self.address = address
    self.engine = engine
    self.journal = journal
    self.script = script
  }

  deinit {
    loop.order { [engine] in engine.value.stop() }
  }

  /// Stops listening, closes all connections, and drops what was delayed or held back.
  ///
  /// Waits that are under way throw `CancellationError`. Stopping twice does nothing.
  public func stop() async {
    await loop.perform { [engine] in engine.value.stop() }
  }

  func order(_ body: @escaping @Sendable (ServerEngine) -> Void) {
    loop.order { [engine] in body(engine.value) }
  }
}

// MARK: - The script

extension SimulatedServer {
  /// Says what to do about requests of a type: what the closure makes of each.
  ///
  /// The closure runs on the loop and must not block. A later rule for the type replaces this one.
  public func on(
    _ type: MessageType,
    _ make: @escaping @Sendable (ReceivedMessage) -> ServerAction
  ) {
    script.value.withLock { $0.rules[type] = .made(make) }
  }

  /// Says what to do about each request of a type, after a time of the loop where one is given.
  public func on(_ type: MessageType, _ action: ServerAction, after delay: Duration? = nil) {
    let action = delay.map { .delay($0, then: action) } ?? action
    script.value.withLock { $0.rules[type] = .listed([action], taken: 0) }
  }

  /// Says what to do about the first, second and so on request of a type; the last one repeats.
  public func on(_ type: MessageType, _ actions: [ServerAction]) {
    precondition(!actions.isEmpty, "a list of actions has at least one")
    script.value.withLock { $0.rules[type] = .listed(actions, taken: 0) }
  }

  /// Says what to do about requests of types that nothing else is scripted for.
  public func onOther(_ make: @escaping @Sendable (ReceivedMessage) -> ServerAction) {
    script.value.withLock { $0.fallback = make }
  }

  /// How a hello is answered from now on.
  public var handshake: ServerHandshake {
    get { script.value.withLock { $0.handshake } }
    set { script.value.withLock { $0.handshake = newValue } }
  }

  /// Whether a ping is answered with a pong: true at first.
  public var answersPings: Bool {
    get { script.value.withLock { $0.answersPings } }
    set { script.value.withLock { $0.answersPings = newValue } }
  }
}

// MARK: - Orders

extension SimulatedServer {
  /// Pushes a message to one connection, or else to all that are open.
  public func push(_ type: MessageType, _ body: [UInt8] = [], to connection: Int? = nil) {
    send(.push(type, body), to: connection)
  }

  /// Sends a frame on one connection, or else on all that are open.
  public func send(_ frame: WireFrame, to connection: Int? = nil) {
    order { $0.send(frame, to: connection) }
  }

  /// Sends bytes as they are on one connection, or else on all that are open.
  public func send(bytes: [UInt8], to connection: Int? = nil) {
    order { $0.send(.bytes(bytes), to: connection) }
  }

  /// Sends bytes one at a time on one connection, or else on all; what follows waits for the last.
  public func dribble(_ bytes: [UInt8], every interval: Duration, to connection: Int? = nil) {
    order { $0.send(.dribble(bytes, every: interval.clampedNanoseconds), to: connection) }
  }

  /// Sends a request on one connection, or else on the newest, and waits for the response.
  ///
  /// Throws ``ConnectionEndedError`` when the connection is not there or ends before, and
  /// `CancellationError` when the task is cancelled or the server stopped.
  public func ask(
    _ type: MessageType,
    _ body: [UInt8] = [],
    on connection: Int? = nil
  ) async throws -> ReceivedMessage {
    // What came before cannot be the answer, and is not looked through.
    let start = journal.record.responses.count
    let sent = await loop.perform { [engine] in engine.value.ask(type, body, on: connection) }
    guard let (number, serial) = sent else { throw ConnectionEndedError(ending: nil) }
    return try await journal.message(on: number) { record in
      record.responses[start...].first { $0.connection == number && $0.serial == serial }
    }
  }

  /// Says goaway on all connections, each time with the number of requests that came on it.
  public func goAway(
    code: ResponseCode = .draining,
    reason: String = "",
    spread: Duration? = nil,
    retryAfter: Duration? = nil,
    alternatives: [String] = []
  ) {
    order { engine in
      engine.sayGoAway { accepted in
        .goAway(
          code: code,
          reason: reason,
          requestsAccepted: accepted,
          spread: spread,
          retryAfter: retryAfter,
          alternatives: alternatives
        )
      }
    }
  }

  /// Closes all connections, after what was sent before; listening goes on.
  public func closeConnections() {
    order { $0.send(.close, to: nil) }
  }

  /// Resets all connections at once; listening goes on. On Unix-domain sockets it closes them.
  public func resetConnections() {
    order { engine in
      for connection in engine.openConnections { connection.reset() }
    }
  }

  /// Ends the server's side of all connections, after what was sent before; reading goes on.
  public func endConnections() {
    order { $0.send(.end, to: nil) }
  }

  /// Reads nothing more from any connection, those to come included.
  public func stopReading() {
    order { $0.setReading(false) }
  }

  /// Reads again, also where an action stopped it.
  public func resumeReading() {
    order { $0.setReading(true) }
  }

  /// Stands still like a stopped process: neither accepts, reads nor writes. Peers can connect and
  /// send, as far as the system has room, and get no answer to anything.
  public func freeze() {
    order { $0.setFrozen(true) }
  }

  /// Ends a freeze; what has come and what was to be sent meanwhile goes on.
  public func thaw() {
    order { $0.setFrozen(false) }
  }

  /// Does what was held back, connection by connection, in the order in which the requests came.
  public func releaseHeld() {
    order { $0.releaseHeld() }
  }
}
