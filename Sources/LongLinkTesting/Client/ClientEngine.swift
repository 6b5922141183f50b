// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The part of a simulated client that lives on its loop.
final class ClientEngine {
  private let loop: EventLoop
  private let journal: Journal
  /// Whether the client answers pings. Any thread may use it.
  private let answersPings: Box<Atomic<Bool>>
  private let security: ClientSecurity?
  private let faults: [SecurityFault]
  private var connection: PeerConnection?
  private var connecting: (@Sendable (SocketError?) -> Void)?

  init(
    on loop: EventLoop, journal: Journal, answersPings: Box<Atomic<Bool>>,
    security: ClientSecurity?, faults: [SecurityFault]
  ) {
    self.security = security
    self.faults = faults
    self.loop = loop
    self.journal = journal
    self.answersPings = answersPings
  }

  /// Starts connecting, and calls `completion` once.
  func connect(to address: SocketAddress, _ completion: @escaping @Sendable (SocketError?) -> Void)
  {
    do throws(SocketError) {
      let stream = secure(try loop.driver.connect(to: address, options: SocketOptions()), address)
      connecting = completion
      connection = PeerConnection(stream, number: 1, isConnecting: true, on: loop, owner: self)
    } catch {
      completion(error)
    }
  }

  private func secure(_ stream: any Transport, _ address: SocketAddress) -> PeerStream {
    guard let security else { return PeerStream(stream: stream) }
    let below = FaultyTransport(over: stream, faults, isConnected: false, on: loop)
    let secured = security.provider.secure(below, host: address.host, on: loop)
    return PeerStream(stream: secured, below: below)
  }

  func sendBelow(_ bytes: [UInt8]) {
    connection?.sendBelow(bytes)
  }

  func endBelow() {
    connection?.endBelow()
  }

  func send(_ output: PeerConnection.Output) {
    connection?.send(output)
  }

  func setReading(_ isReading: Bool) {
    connection?.setReading(isReading)
  }

  /// Sends a request with the next serial, and returns the serial; nil if the connection is not
  /// open.
  func ask(_ type: MessageType, _ body: [UInt8], _ metadata: WireMetadata?) -> UInt32? {
    guard let connection, connection.isOpen else { return nil }
    connection.lastSerial = max(connection.lastSerial, Wire.firstSerial - 1) + 1
    let serial = connection.lastSerial
    let frame = WireFrame.request(type, serial: serial, body, metadata: metadata)
    connection.send(.bytes(frame.bytes))
    return serial
  }

  func close() {
    connection?.close()
  }

  func reset() {
    connection?.reset()
  }
}

extension ClientEngine: PeerConnectionOwner {
  func connected(_ connection: PeerConnection, _ error: SocketError?) {
    if error == nil { journal.update { $0.connections = 1 } }
    var error = error
    error?.securityFailure = connection.securityFailure
    connecting.take()?(error)
  }

  func received(_ reading: FrameReader.Reading, on connection: PeerConnection) {
    let frame = reading.frame
    let received = ReceivedFrame(
      connection: 1,
      frame: frame,
      isIntact: reading.isIntact,
      time: loop.now
    )
    var message: WireFrame?
    if reading.isIntact {
      switch frame.kind {
      case .request, .response, .push, .item:
        if frame.kind == .response { connection.joiner.dropItem(frame.serial) }
        message = connection.joiner.join(frame)
      case .cancel: connection.joiner.drop(frame.serial)
      case .renewal: message = frame
      case .ping where answersPings.value.load(ordering: .relaxed):
        connection.send(.bytes(WireFrame.pong(frame.body).bytes))
      default: break
      }
    }
    let whole = message
    journal.update { record in
      record.frames.append(received)
      if received.isIntact { record.note(frame, whole: whole, connection: 1) }
      if let whole, whole.kind != .item {
        _ = record.add(whole, connection: 1, time: received.time)
      }
    }
  }

  func secured(_ connection: PeerConnection, _ security: ConnectionSecurity) {
    let number = connection.number
    journal.update { $0.security[number] = security }
  }

  func received(_ violation: Violation, on connection: PeerConnection) {}

  func ended(_ connection: PeerConnection, _ reason: ConnectionEnding.Reason) {
    let ending = ConnectionEnding(connection, reason, at: loop.now)
    journal.update { $0.endings.append(ending) }
  }
}
