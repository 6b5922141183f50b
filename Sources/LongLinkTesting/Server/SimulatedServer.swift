// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// A server that follows a test's script, and records what it receives.
///
/// It can send any frames, so it can also misbehave in any way. It runs on any event loop: over
/// loopback or Unix-domain sockets on a real one, or in a ``Simulation``, where its delays take
/// virtual time. By default it responds to a hello with a welcome and to a ping with a pong, and
/// refuses requests of types without a script with 404.
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
/// Any thread may call its methods. Away from the server's loop, methods such as `push` return
/// before the loop carries them out, in the order of the calls. The server also stops when the last
/// reference to it is gone.
public final class SimulatedServer: Sendable {
  /// The server's event loop.
  public let loop: EventLoop
  /// The address that the server listens on, with its actual port.
  public let address: SocketAddress

  /// The endpoint that clients connect to.
  public var endpoint: Endpoint { Endpoint(address) }

  let engine: LoopBound<ServerEngine>
  let journal: Journal
  let script: Box<Mutex<ServerScript>>

  /// Starts a server, by default on the shared loop and on a free port of 127.0.0.1.
  ///
  /// With a dialect, kinds, message types and the library's codes are translated to and from the
  /// dialect's wire format. Sending a frame that the dialect cannot express traps. With `security`,
  /// all connections are secured by it; see also ``securityFaults``.
  ///
  /// Throws an error whose description names the reason, such as `EADDRINUSE`, if it cannot listen,
  /// and a `LongLinkError` with the code `invalidConfiguration` for a dialect that a server cannot
  /// use.
  public static func start(
    on loop: EventLoop = .shared,
    at address: SocketAddress = .ipv4(127, 0, 0, 1, port: 0),
    dialect: Dialect = .native,
    security: ServerSecurity? = nil
  ) async throws -> SimulatedServer {
    try dialect.validate(.server, field: "dialect")
    let journal = Journal()
    let script = Box(Mutex(ServerScript()))
    let started = await loop.perform {
      () -> Result<(LoopBound<ServerEngine>, SocketAddress), SocketError> in
      do throws(SocketError) {
        let engine = try ServerEngine(
          on: loop, at: address, dialect: dialect, security: security, script: script,
          journal: journal)
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

  /// Stops listening, closes all connections, and drops delayed or held actions.
  ///
  /// Pending waits throw `CancellationError`. Stopping again does nothing.
  public func stop() async {
    await loop.perform { [engine] in engine.value.stop() }
  }

  func order(_ body: @escaping @Sendable (ServerEngine) -> Void) {
    loop.order { [engine] in body(engine.value) }
  }
}

// MARK: - The script

extension SimulatedServer {
  /// Performs the action that the closure returns for each request of a type.
  ///
  /// The closure runs on the loop and must not block. A later script for the type replaces it.
  public func on(
    _ type: MessageType,
    _ make: @escaping @Sendable (ReceivedMessage) -> ServerAction
  ) {
    script.value.withLock { $0.rules[type] = .made(make) }
  }

  /// Performs an action for each request of a type, after `delay` if there is one. A later script
  /// for the type replaces this one.
  public func on(_ type: MessageType, _ action: ServerAction, after delay: Duration? = nil) {
    let action = delay.map { .delay($0, then: action) } ?? action
    script.value.withLock { $0.rules[type] = .listed([action], taken: 0) }
  }

  /// Performs the first action for the first request of a type, the second for the second, and so
  /// on. The last action repeats. A later script for the type replaces this one. An empty array
  /// traps.
  public func on(_ type: MessageType, _ actions: [ServerAction]) {
    precondition(!actions.isEmpty, "a list of actions must not be empty")
    script.value.withLock { $0.rules[type] = .listed(actions, taken: 0) }
  }

  /// The response to hellos that arrive from now on; initially ``ServerHandshake/normal``.
  public var handshake: ServerHandshake {
    get { script.value.withLock { $0.handshake } }
    set { script.value.withLock { $0.handshake = newValue } }
  }

  /// The faults below the security of connections that the server accepts from now on; initially
  /// none. Without security they have no effect.
  public var securityFaults: [SecurityFault] {
    get { script.value.withLock { $0.securityFaults } }
    set { script.value.withLock { $0.securityFaults = newValue } }
  }

  /// Whether the server answers each ping with a pong; initially true.
  public var answersPings: Bool {
    get { script.value.withLock { $0.answersPings } }
    set { script.value.withLock { $0.answersPings = newValue } }
  }
}

// MARK: - Orders

extension SimulatedServer {
  /// Pushes a message on one connection, by its number from 1, or by default on all that are open.
  public func push(_ type: MessageType, _ body: [UInt8] = [], to connection: Int? = nil) {
    send(.push(type, body), to: connection)
  }

  /// Sends a frame on one connection, by its number from 1, or by default on all that are open.
  public func send(_ frame: WireFrame, to connection: Int? = nil) {
    order { $0.send(frame, to: connection) }
  }

  /// Sends bytes unchanged on one connection, by its number from 1, or by default on all that are
  /// open.
  public func send(bytes: [UInt8], to connection: Int? = nil) {
    order { $0.send(.bytes(bytes), to: connection) }
  }

  /// Sends bytes one at a time, with `interval` between two of them, on one connection, or by
  /// default on all that are open. Later output of the connection waits until the last byte has
  /// been written.
  public func dribble(_ bytes: [UInt8], every interval: Duration, to connection: Int? = nil) {
    order { $0.send(.dribble(bytes, every: interval.clampedNanoseconds), to: connection) }
  }

  /// Sends a request on one connection, or by default on the newest open one, and waits for the
  /// response, whatever its code.
  ///
  /// Throws an error whose description says why there can be no response, if the connection is not
  /// open or ends first, and `CancellationError` if the task is cancelled or the server stops.
  /// Traps in a dialect in which servers cannot send requests.
  public func ask(
    _ type: MessageType,
    _ body: [UInt8] = [],
    on connection: Int? = nil,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    // Earlier responses cannot match, and are skipped.
    let start = journal.record.responses.count
    let sent = await loop.perform { [engine] in engine.value.ask(type, body, on: connection) }
    guard let (number, serial) = sent else {
      let record = journal.record
      throw ConnectionEndedError(ending: record.ending(of: connection ?? record.connections))
    }
    let call = call("the response to its request of type \(type)", fileID, line)
    return try await journal.message(on: number, for: call) { record in
      record.responses[start...].first { $0.connection == number && $0.serial == serial }
    }
  }

  /// Sends a goaway on one connection, or by default on all that are open. It contains the number
  /// of requests received on the connection.
  ///
  /// It asks the client to move: with `ResponseCode.unauthenticated` because its credential has
  /// expired, with any other code because the server drains.
  public func goAway(
    code: ResponseCode = .draining,
    reason: String = "",
    spread: Duration? = nil,
    retryAfter: Duration? = nil,
    alternatives: [String] = [],
    to connection: Int? = nil
  ) {
    order { engine in
      engine.sendGoAway(to: connection) { accepted in
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

  /// Closes all connections after earlier output, and keeps listening.
  public func closeConnections() {
    order { $0.send(.close, to: nil) }
  }

  /// Resets all connections immediately, and keeps listening. Unix-domain sockets are closed.
  public func resetConnections() {
    order { engine in
      for connection in engine.openConnections { connection.reset() }
    }
  }

  /// Ends the server's side of all connections after earlier output. Reading continues.
  public func endConnections() {
    order { $0.send(.end, to: nil) }
  }

  /// Stops reading from all connections, including later ones, until ``resumeReading()``.
  public func stopReading() {
    order { $0.setReading(false) }
  }

  /// Reads from all connections again, even from those that ``ServerAction/stopReading`` has
  /// stopped.
  public func resumeReading() {
    order { $0.setReading(true) }
  }

  /// Freezes the server like a stopped process, until ``thaw()``: it does not accept, read or
  /// write. Peers can connect and send while the system has room, but get no response.
  public func freeze() {
    order { $0.setFrozen(true) }
  }

  /// Ends a freeze. The server then handles what has arrived, and sends its pending output.
  public func thaw() {
    order { $0.setFrozen(false) }
  }

  /// Performs all actions that ``ServerAction/hold(untilThereAre:order:_:)`` holds, connection by
  /// connection, in the order of the requests.
  public func releaseHeld() {
    order { $0.releaseHeld() }
  }
}
