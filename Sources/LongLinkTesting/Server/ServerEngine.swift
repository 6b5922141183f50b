// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The part of a simulated server that lives on its loop: it listens, and follows the script.
final class ServerEngine: TransportHandler {
  let loop: EventLoop
  let journal: Journal
  private let script: Box<Mutex<ServerScript>>
  private let dialect: Dialect
  private let security: ServerSecurity?
  private let listener: any TransportListener
  private(set) var connections: [Int: PeerConnection] = [:]
  private var connectionsMade = 0
  private var isReading = true
  private var isFrozen = false
  var held: [HoldKey: [Pending]] = [:]
  var delayed: [UInt64: Delayed] = [:]
  var delaysMade: UInt64 = 0
  /// The rests of sequences that wait for the stream of their request.
  var suspended: [PeerRecord.StreamKey: [Suspended]] = [:]
  private(set) var isStopped = false

  /// An action that is still to be performed for a request.
  struct Pending {
    let step: ServerAction.Step
    let request: ReceivedMessage
  }

  struct Delayed {
    let pending: Pending
    let timer: LoopTimer
  }

  struct Suspended {
    let condition: @Sendable (ReceivedStream) -> Bool
    let pending: Pending
  }

  struct HoldKey: Hashable {
    let connection: Int
    let type: MessageType
  }

  init(
    on loop: EventLoop,
    at address: SocketAddress,
    dialect: Dialect,
    security: ServerSecurity?,
    script: Box<Mutex<ServerScript>>,
    journal: Journal
  ) throws(SocketError) {
    self.security = security
    self.loop = loop
    self.dialect = dialect
    self.script = script
    self.journal = journal
    listener = try loop.driver.listen(on: address, options: SocketOptions())
    listener.attach(self, token: 0)
    listener.setInterest(.read)
    // Whether connections are to move is the script's decision.
    security?.provider.serverStarted(ObjectIdentifier(self), on: loop, { _, _, _ in }, replaced: {})
  }

  private func secure(_ stream: any Transport) -> PeerStream {
    guard let security else { return PeerStream(stream: stream) }
    let faults = script.value.withLock { $0.securityFaults }
    let below = FaultyTransport(over: stream, faults, isConnected: true, on: loop)
    return PeerStream(stream: security.provider.secure(below, on: loop), below: below)
  }

  var address: SocketAddress { listener.localAddress }

  /// The open connections in the order of arrival.
  var openConnections: [PeerConnection] {
    connections.keys.sorted().compactMap { connections[$0] }
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    do throws(SocketError) {
      while let accepted = try listener.accept() {
        let stream = secure(try accepted.adopt(on: loop))
        connectionsMade += 1
        // A prefix of the wrong length is a mistake of the test.
        let codec = try! dialect.source?.framing(.server, maxBody: .max)
        let connection = PeerConnection(
          stream,
          number: connectionsMade,
          isConnecting: false,
          speaking: codec,
          on: loop,
          owner: self
        )
        connections[connection.number] = connection
        connection.setReading(isReading)
        journal.update { $0.connections += 1 }
      }
    } catch {
      // The connection has already ended; the next one makes the listener ready again.
    }
  }

  // MARK: Orders

  func setReading(_ isReading: Bool) {
    self.isReading = isReading
    for connection in openConnections { connection.setReading(isReading) }
  }

  func setFrozen(_ isFrozen: Bool) {
    guard !isStopped else { return }
    self.isFrozen = isFrozen
    listener.setInterest(isFrozen ? [] : .read)
    for connection in openConnections { connection.setFrozen(isFrozen) }
  }

  func send(_ output: PeerConnection.Output, to number: Int?) {
    for connection in meant(number) { connection.send(output) }
  }

  func sendBelow(_ bytes: [UInt8], to number: Int?) {
    for connection in meant(number) { connection.sendBelow(bytes) }
  }

  func endBelow(_ number: Int?) {
    for connection in meant(number) { connection.endBelow() }
  }

  func send(_ frame: WireFrame, to number: Int?) {
    for connection in meant(number) { connection.send(frame) }
  }

  private func meant(_ number: Int?) -> [PeerConnection] {
    guard let number else { return openConnections }
    return connections[number].map { [$0] } ?? []
  }

  func sendGoAway(to number: Int?, _ make: (UInt64) -> WireFrame) {
    for connection in meant(number) {
      connection.send(make(connection.requestsBegun))
    }
  }

  /// Sends a request; nil if the connection is not open.
  func ask(_ type: MessageType, _ body: [UInt8], on number: Int?) -> (Int, UInt32)? {
    guard let number = number ?? connections.keys.max(), let connection = connections[number] else {
      return nil
    }
    guard let serials = connection.wire.serials(.server) else {
      preconditionFailure("in this dialect a server cannot send requests")
    }
    connection.lastSerial = max(connection.lastSerial, serials.lowerBound - 1) + 1
    let serial = connection.lastSerial
    connection.send(.request(type, serial: serial, body))
    return (number, serial)
  }

  func stop() {
    guard !isStopped else { return }
    isStopped = true
    listener.close()
    security?.provider.serverStopped(ObjectIdentifier(self), on: loop)
    for connection in openConnections { connection.close() }
    for delayed in delayed.values { loop.cancel(delayed.timer) }
    delayed = [:]
    held = [:]
    suspended = [:]
    journal.finish()
  }
}

extension ServerEngine: PeerConnectionOwner {
  func connected(_ connection: PeerConnection, _ error: SocketError?) {}

  func received(_ reading: FrameReader.Reading, on connection: PeerConnection) {
    let frame = reading.frame
    let received = ReceivedFrame(
      connection: connection.number,
      frame: frame,
      isIntact: reading.isIntact,
      time: loop.now
    )
    guard reading.isIntact else {
      journal.update { $0.frames.append(received) }
      return
    }
    var message: WireFrame?
    switch frame.kind {
    case .request, .response, .push, .item:
      if frame.kind == .response { connection.joiner.dropItem(frame.serial) }
      if frame.kind == .request, !connection.joiner.continues(frame) {
        connection.requestsBegun += 1
      }
      message = connection.joiner.join(frame)
    case .cancel: connection.joiner.drop(frame.serial)
    case .renewal: message = frame
    default: break
    }
    let whole = message
    let noted = journal.update { record -> ReceivedMessage? in
      record.frames.append(received)
      record.note(frame, whole: whole, connection: received.connection)
      guard let whole, whole.kind != .item else { return nil }
      return record.add(whole, connection: received.connection, time: received.time)
    }
    answer(frame, noted, on: connection)
    resume(after: frame, on: connection.number)
  }

  func secured(_ connection: PeerConnection, _ security: ConnectionSecurity) {
    let number = connection.number
    journal.update { $0.security[number] = security }
  }

  func received(_ violation: Violation, on connection: PeerConnection) {
    journal.update { $0.violations.append(violation) }
  }

  func ended(_ connection: PeerConnection, _ reason: ConnectionEnding.Reason) {
    connections[connection.number] = nil
    suspended = suspended.filter { $0.key.connection != connection.number }
    let ending = ConnectionEnding(connection, reason, at: loop.now)
    journal.update { $0.endings.append(ending) }
    // The server does not send to a peer that has ended its side.
    connection.close()
  }

  private func answer(
    _ frame: WireFrame,
    _ message: ReceivedMessage?,
    on connection: PeerConnection
  ) {
    switch frame.kind {
    case .hello:
      greet(frame, on: connection)
    case .ping where script.value.withLock({ $0.answersPings }):
      connection.send(connection.wire.pong(to: frame))
    case .request, .renewal:
      guard let message else { return }
      let action = script.value.withLock { $0.action(for: message) }
      perform(Pending(step: action().step, request: message))
    default:
      break
    }
  }

  private func greet(_ hello: WireFrame, on connection: PeerConnection) {
    let (step, renews) = script.value.withLock { ($0.handshake.step, $0.renewal != nil) }
    switch step {
    case .welcome(let features, let streamCredit, let credentialExpires, let once):
      let fields = hello.helloFields
      var common = features.intersection(fields?.features ?? [])
      if credentialExpires == nil, !renews { common.remove(.renewal) }
      if once == nil { common.remove(.once) }
      let terms = common.contains(.once) ? once : nil
      let welcome = WireFrame.welcome(
        features: common,
        heartbeatInterval: fields?.heartbeatInterval,
        heartbeatTimeout: fields?.heartbeatTimeout,
        name: "simulated",
        streamCredit: common.contains(.streams) ? streamCredit : 0,
        credentialExpires: credentialExpires,
        keySpace: terms?.space ?? [],
        keyRetention: terms?.retention,
        keyTime: terms?.time ?? 0
      )
      connection.send(welcome)
    case .frames(let frames):
      for frame in frames { connection.send(frame) }
    case .refuse(let goAway):
      connection.send(goAway)
      connection.send(.close)
    case .close:
      connection.send(.close)
    case .reset:
      connection.send(.reset)
    }
  }
}
