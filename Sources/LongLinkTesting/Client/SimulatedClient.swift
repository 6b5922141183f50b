// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// One connection to a server, on which a test sends whatever it likes and sees what comes back.
///
/// It speaks frames and nothing else: it says no hello by itself and checks nothing. By itself it
/// only answers a ping with a pong. It runs on any event loop, real or simulated.
///
/// ```swift
/// let client = try await SimulatedClient.connect(to: address, on: loop)
/// try await client.sayHello()
/// let response = try await client.request(7, [1, 2, 3])
/// client.send(bytes: WireFrame.ping().corruptBytes)
/// let ending = try await client.waitForEnd()
/// ```
///
/// Everything may be called from any thread. Away from the client's loop, orders such as `send` are
/// carried out as soon as the loop gets to them, in the order in which they were given.
public final class SimulatedClient: Sendable {
  /// The loop that the client lives on.
  public let loop: EventLoop

  private let engine: LoopBound<ClientEngine>
  private let journal: Journal
  private let pings: Box<Atomic<Bool>>

  /// Connects, by default on the shared loop.
  ///
  /// Throws `SocketError` when that fails. There is no time limit but the system's.
  public static func connect(
    to address: SocketAddress,
    on loop: EventLoop = .shared
  ) async throws -> SimulatedClient {
    let journal = Journal()
    let pings = Box(Atomic(true))
    let engine = await loop.perform {
      LoopBound(ClientEngine(on: loop, journal: journal, answersPings: pings), on: loop)
    }
    let client = SimulatedClient(loop, engine, journal, pings)
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
    _ pings: Box<Atomic<Bool>>
  ) {
    self.loop = loop
    self.engine = engine
    self.journal = journal
    self.pings = pings
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
  /// Whether a ping is answered with a pong: true at first.
  public var answersPings: Bool {
    get { pings.value.load(ordering: .relaxed) }
    set { pings.value.store(newValue, ordering: .relaxed) }
  }

  /// Sends a frame.
  public func send(_ frame: WireFrame) {
    send(bytes: frame.bytes)
  }

  /// Sends frames, in one write where there is room.
  public func send(_ frames: [WireFrame]) {
    send(bytes: frames.flatMap(\.bytes))
  }

  /// Sends bytes as they are.
  public func send(bytes: [UInt8]) {
    order { $0.send(.bytes(bytes)) }
  }

  /// Sends bytes one at a time; what is sent later waits until the last of them has left.
  public func dribble(_ bytes: [UInt8], every interval: Duration) {
    order { $0.send(.dribble(bytes, every: interval.clampedNanoseconds)) }
  }

  /// Ends this side, after what was sent before. Reading goes on.
  public func halfClose() {
    order { $0.send(.end) }
  }

  /// Closes the connection, after what was sent before.
  public func close() {
    order { $0.send(.close) }
  }

  /// Resets the connection at once. On a Unix-domain socket it closes it.
  public func reset() {
    order { $0.reset() }
  }

  /// Reads nothing more.
  public func stopReading() {
    order { $0.setReading(false) }
  }

  /// Reads again.
  public func resumeReading() {
    order { $0.setReading(true) }
  }

  /// Says hello and waits for the welcome.
  ///
  /// Throws ``ConnectionEndedError`` when the connection ends before, and `CancellationError` when
  /// the task is cancelled.
  @discardableResult
  public func sayHello(_ hello: WireFrame = .hello()) async throws -> GreetingFields {
    send(hello)
    return try await journal.message(on: 1) {
      $0.frames(of: .welcome).first?.welcomeFields
    }
  }

  /// Sends a request with a serial of its own, from 50 on, and waits for the response.
  ///
  /// Throws ``ConnectionEndedError`` when the connection ends before, and `CancellationError` when
  /// the task is cancelled.
  public func request(
    _ type: MessageType,
    _ body: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) async throws -> ReceivedMessage {
    // What came before cannot be the answer, and is not looked through.
    let start = record.responses.count
    let serial = await loop.perform { [engine] in engine.value.ask(type, body, metadata) }
    guard let serial else { throw ConnectionEndedError(ending: record.ending(of: 1)) }
    return try await journal.message(on: 1) { record in
      record.responses[start...].first { $0.serial == serial }
    }
  }
}

// MARK: - What came back

extension SimulatedClient {
  /// All that was received up to now.
  public var record: PeerRecord { journal.record }

  /// All frames that were received up to now, in the order in which they came.
  public var received: [ReceivedFrame] { record.frames }

  /// All responses that were received up to now.
  public var responses: [ReceivedMessage] { record.responses }

  /// All pushes that were received up to now.
  public var pushes: [ReceivedMessage] { record.pushes }

  /// Waits for the first response to a serial.
  ///
  /// Throws ``ConnectionEndedError`` when the connection ends before, and `CancellationError` when
  /// the task is cancelled.
  public func waitForResponse(to serial: UInt32) async throws -> ReceivedMessage {
    try await journal.message(on: 1) { record in
      record.responses.first { $0.serial == serial }
    }
  }

  /// Waits until so many frames of a kind have come, damaged ones included; returns the last one
  /// that was waited for.
  ///
  /// Throws ``ConnectionEndedError`` when the connection ends before, and `CancellationError` when
  /// the task is cancelled.
  @discardableResult
  public func waitForFrame(_ kind: WireFrame.Kind, count: Int = 1) async throws -> WireFrame {
    precondition(count > 0, "at least one frame is waited for")
    return try await journal.message(on: 1) { record in
      let frames = record.frames(of: kind)
      return frames.count >= count ? frames[count - 1] : nil
    }
  }

  /// Waits until a condition on what was received holds; it is asked after each frame.
  ///
  /// Throws ``ConnectionEndedError`` when the connection ends before, and `CancellationError` when
  /// the task is cancelled.
  public func wait(until condition: @escaping @Sendable (PeerRecord) -> Bool) async throws {
    try await journal.message(on: 1) { condition($0) ? () : nil }
  }

  /// Waits until the connection has ended, and says how.
  ///
  /// Throws `CancellationError` when the task is cancelled before.
  @discardableResult
  public func waitForEnd() async throws -> ConnectionEnding {
    try await journal.message(on: 1) { $0.ending(of: 1) }
  }
}
