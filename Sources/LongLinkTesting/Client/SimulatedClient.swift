// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// One connection to a server, on which a test sends any frames or bytes and sees what comes back.
///
/// It sends no hello automatically, and does not check received frames. Its only automatic reaction
/// is a pong for each ping. It runs on any event loop, real or simulated.
///
/// ```swift
/// let client = try await SimulatedClient.connect(to: address, on: loop)
/// try await client.sayHello()
/// let response = try await client.request(7, [1, 2, 3])
/// client.send(bytes: WireFrame.ping().corruptBytes)
/// let ending = try await client.waitForEnd()
/// ```
///
/// Any thread may call its methods. Away from the client's loop, methods such as `send` return
/// before the loop carries them out, in the order of the calls. The connection closes when the last
/// reference to the client is gone.
public final class SimulatedClient: Sendable {
  /// The client's event loop.
  public let loop: EventLoop

  private let engine: LoopBound<ClientEngine>
  let journal: Journal
  private let pings: Box<Atomic<Bool>>
  let target: Target
  /// The hello that the client sent last.
  let hello = Mutex(WireFrame.hello())

  /// The address that a client connected to, with its security and faults.
  struct Target: Sendable {
    var address: SocketAddress
    let security: ClientSecurity?
    let faults: [SecurityFault]
  }

  /// Connects to a server, by default on the shared loop and without encryption.
  ///
  /// With `security`, it returns once the connection is secure, and `securityFaults` happen below
  /// the security. The server's certificate has to be for the address, unless the security names
  /// another host.
  ///
  /// Throws an error whose description names the reason, if connecting or securing the connection
  /// fails. Connecting takes at most as long as the system allows; nothing limits the time for
  /// securing the connection, and a cancelled task waits on.
  public static func connect(
    to address: SocketAddress,
    on loop: EventLoop = .shared,
    security: ClientSecurity? = nil,
    securityFaults: [SecurityFault] = [],
    fileID: String = #fileID, line: Int = #line
  ) async throws -> SimulatedClient {
    let wait = WaitList.begin(
      "a connection to \(address)", at: SourcePlace(fileID: fileID, line: line))
    defer { wait?.ended() }
    let journal = Journal()
    let pings = Box(Atomic(true))
    let engine = await loop.perform {
      LoopBound(
        ClientEngine(
          on: loop, journal: journal, answersPings: pings, security: security,
          faults: securityFaults), on: loop)
    }
    let target = Target(address: address, security: security, faults: securityFaults)
    let client = SimulatedClient(loop, engine, journal, pings, target)
    let error = await withCheckedContinuation { continuation in
      client.order { engine in
        engine.connect(to: address) { continuation.resume(returning: $0) }
      }
    }
    if let error { throw error }
    return client
  }

  private init(
    _ loop: EventLoop,
    _ engine: LoopBound<ClientEngine>,
    _ journal: Journal,
    _ pings: Box<Atomic<Bool>>,
    _ target: Target
  ) {
    self.loop = loop
    self.engine = engine
    self.journal = journal
    self.pings = pings
    self.target = target
  }

  deinit {
    loop.order { [engine] in engine.value.close() }
    journal.finish()
  }

  private func order(_ body: @escaping @Sendable (ClientEngine) -> Void) {
    loop.order { [engine] in body(engine.value) }
  }
}

// MARK: - Orders

extension SimulatedClient {
  /// Whether the client answers each ping with a pong; initially true.
  public var answersPings: Bool {
    get { pings.value.load(ordering: .relaxed) }
    set { pings.value.store(newValue, ordering: .relaxed) }
  }

  /// Sends a frame.
  public func send(_ frame: WireFrame) {
    send(bytes: frame.bytes)
  }

  /// Sends frames in this order, in one write if there is room.
  public func send(_ frames: [WireFrame]) {
    send(bytes: frames.flatMap(\.bytes))
  }

  /// Sends bytes unchanged, after earlier output.
  public func send(bytes: [UInt8]) {
    order { $0.send(.bytes(bytes)) }
  }

  /// Sends bytes one at a time, with `interval` between two of them. Later output waits until the
  /// last of them has been written.
  public func dribble(_ bytes: [UInt8], every interval: Duration) {
    order { $0.send(.dribble(bytes, every: interval.clampedNanoseconds)) }
  }

  /// Sends bytes below the security, as they are; without security, like `send(bytes:)`.
  public func send(bytesBelowSecurity bytes: [UInt8]) {
    order { $0.sendBelow(bytes) }
  }

  /// Ends this side below the security, without sending the security's own end (TLS's
  /// close_notify). Without security, it is like ``halfClose()``.
  public func endBelowSecurity() {
    order { $0.endBelow() }
  }

  /// How the connection is secured; nil if `connect` got no `security`. It stays after the end.
  public var security: ConnectionSecurity? { journal.record.security[1] }

  /// Ends this side of the connection after earlier output. Reading continues.
  public func halfClose() {
    order { $0.send(.end) }
  }

  /// Closes the connection after earlier output.
  public func close() {
    order { $0.send(.close) }
  }

  /// Resets the connection immediately. A Unix-domain socket is closed instead.
  public func reset() {
    order { $0.reset() }
  }

  /// Stops reading from the connection, until `resumeReading`: what arrives waits in the system.
  public func stopReading() {
    order { $0.setReading(false) }
  }

  /// Reads again after ``stopReading()``, beginning with what has arrived in the meantime.
  public func resumeReading() {
    order { $0.setReading(true) }
  }

  /// Sends a hello, waits for the welcome, and returns the welcome's fields.
  ///
  /// Throws an error that says how the connection has ended, if it ends first, and
  /// `CancellationError` if the task is cancelled.
  @discardableResult
  public func sayHello(
    _ hello: WireFrame = .hello(), fileID: String = #fileID, line: Int = #line
  ) async throws -> GreetingFields {
    self.hello.withLock { $0 = hello }
    send(hello)
    return try await journal.message(on: 1, for: call("the welcome", fileID, line)) {
      $0.frames(of: .welcome).first?.welcomeFields
    }
  }

  /// Sends a request with a new serial, from 50 on, and waits for the response, whatever its code.
  ///
  /// Throws an error that says how the connection has ended, if it ends first, and
  /// `CancellationError` if the task is cancelled.
  public func request(
    _ type: MessageType,
    _ body: [UInt8] = [],
    metadata: WireMetadata? = nil,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    // Earlier responses cannot match, and are skipped.
    let start = record.responses.count
    let serial = await loop.perform { [engine] in engine.value.ask(type, body, metadata) }
    guard let serial else { throw ConnectionEndedError(ending: record.ending(of: 1)) }
    let call = call("the response to request \(type) (serial \(serial))", fileID, line)
    return try await journal.message(on: 1, for: call) { record in
      record.responses[start...].first { $0.serial == serial }
    }
  }
}

// MARK: - Streams

extension SimulatedClient {
  /// Sends a request that opens a stream, with a new serial from 50 on, and returns the serial.
  ///
  /// `credit` is the first credit for the server's items, in bytes; nil asks for none. `sendsItems`
  /// announces items, which you send with ``sendItem(_:_:inFragmentsOf:)``; end them with
  /// ``WireFrame/end(_:)``. Nothing checks the credit of either side. The hello and the welcome
  /// must both contain ``WireFeatures/streams``.
  ///
  /// Throws an error that says how the connection has ended, if it has.
  public func openStream(
    _ type: MessageType,
    _ body: [UInt8] = [],
    credit: UInt32? = nil,
    sendsItems: Bool = false
  ) async throws -> UInt32 {
    let metadata = WireMetadata(credit: credit, items: sendsItems)
    let serial = await loop.perform { [engine] in engine.value.ask(type, body, metadata) }
    guard let serial else { throw ConnectionEndedError(ending: record.ending(of: 1)) }
    return serial
  }

  /// Sends an item of the stream with a serial, in frames of at most `size` bytes of body, whatever
  /// the credit. A `size` below 1 traps.
  public func sendItem(_ serial: UInt32, _ item: [UInt8], inFragmentsOf size: Int = 65_536) {
    send(WireFrame.item(serial, item).fragments(of: size))
  }

  /// Waits until a condition holds for what has arrived of the stream with a serial, and returns
  /// that part of the record as it was then.
  ///
  /// The condition is checked at once and after each frame. It must not block or use this client,
  /// because a lock is held. Throws an error that says how the connection has ended, if it ends
  /// first, and `CancellationError` if the task is cancelled.
  @discardableResult
  public func waitForStream(
    _ serial: UInt32, until condition: @escaping @Sendable (ReceivedStream) -> Bool,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedStream {
    try await journal.message(
      on: 1, for: call("a condition on stream \(serial)", fileID, line)
    ) { record in
      record.stream(serial).flatMap { condition($0) ? $0 : nil }
    }
  }
}

// MARK: - Received frames

extension SimulatedClient {
  /// A snapshot of everything received so far.
  public var record: PeerRecord { journal.record }

  /// All frames received so far, in the order of arrival.
  public var received: [ReceivedFrame] { record.frames }

  /// All responses received so far, with fragments joined, in the order of completion.
  public var responses: [ReceivedMessage] { record.responses }

  /// All pushes received so far, with fragments joined, in the order of completion.
  public var pushes: [ReceivedMessage] { record.pushes }

  /// What has been received so far of each stream, in the order of their first frames.
  public var streams: [ReceivedStream] { record.streams }

  /// Waits for the first response with a serial, which may have arrived before the call.
  ///
  /// Throws an error that says how the connection has ended, if it ends first, and
  /// `CancellationError` if the task is cancelled.
  public func waitForResponse(
    to serial: UInt32, fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    let call = call("the response to serial \(serial)", fileID, line)
    return try await journal.message(on: 1, for: call) { record in
      record.responses.first { $0.serial == serial }
    }
  }

  /// Waits until `count` frames of a kind have arrived since the connection was made, damaged ones
  /// included, and returns the last of these. A `count` below 1 traps.
  ///
  /// Throws an error that says how the connection has ended, if it ends first, and
  /// `CancellationError` if the task is cancelled.
  @discardableResult
  public func waitForFrame(
    _ kind: WireFrame.Kind, count: Int = 1, fileID: String = #fileID, line: Int = #line
  ) async throws -> WireFrame {
    precondition(count > 0, "count has to be at least 1")
    let call = call("\(kind) \(count)", fileID, line)
    return try await journal.message(on: 1, for: call) { record in
      let frames = record.frames(of: kind)
      return frames.count >= count ? frames[count - 1] : nil
    }
  }

  /// Waits until a condition on the record holds.
  ///
  /// The condition is checked at once and after each change. It must not block or use this client,
  /// because a lock is held. Throws an error that says how the connection has ended, if it ends
  /// first, and `CancellationError` if the task is cancelled.
  public func wait(
    until condition: @escaping @Sendable (PeerRecord) -> Bool, fileID: String = #fileID,
    line: Int = #line
  ) async throws {
    try await journal.message(on: 1, for: call("a condition", fileID, line)) {
      condition($0) ? () : nil
    }
  }

  /// Waits until the connection has ended, and returns how it ended.
  ///
  /// Throws `CancellationError` if the task is cancelled first.
  @discardableResult
  public func waitForEnd(
    fileID: String = #fileID, line: Int = #line
  ) async throws -> ConnectionEnding {
    try await journal.message(on: 1, for: call("the end", fileID, line)) { $0.ending(of: 1) }
  }

  /// Describes a wait on this client's connection, for the errors of a simulation.
  func call(_ subject: String, _ fileID: String, _ line: Int) -> Journal.Call {
    Journal.Call("\(subject), on the connection to \(target.address)", fileID, line)
  }
}
