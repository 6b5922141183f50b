// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// One frame that a scripted peer received.
public struct ReceivedFrame: Hashable, Sendable {
  /// The number of the connection on which the frame arrived, from 1.
  public let connection: Int
  /// The frame, even if it is invalid.
  public let frame: WireFrame
  /// Whether the frame's checksum was correct.
  public let isIntact: Bool
  /// When the frame was read, by the clock of the peer's loop.
  public let time: LinkInstant
}

/// One message that a scripted peer received: an undamaged frame, or joined fragments.
public struct ReceivedMessage: Hashable, Sendable {
  /// The number of the connection on which the message arrived, from 1.
  public let connection: Int
  /// The kind: request, response, push or renewal.
  public let kind: WireFrame.Kind
  /// Of a request or push, the message type; of a response, the code and the refused bit; of the
  /// answer to a renewal, the code.
  public let tag: UInt32
  /// The serial, which links a response to its request. All pushes have the same serial.
  public let serial: UInt32
  /// The body, without metadata.
  public let body: [UInt8]
  /// The metadata; nil without valid metadata.
  public let metadata: WireMetadata?
  /// The message's number among all messages of its kind and tag on all connections, from 1.
  public let number: Int
  /// When the message's last byte was read, by the clock of the peer's loop.
  public let time: LinkInstant

  /// The type of a request or push.
  public var type: MessageType { MessageType(tag: tag) }
  /// The code of a response, or of the answer to a renewal.
  public var code: ResponseCode { ResponseCode(wire: tag) }
  /// Whether a response has the refused bit, so that no handler was called.
  public var isRefused: Bool { tag & Wire.refusedBit != 0 }
  /// The body as text, with replacement characters for invalid UTF-8.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// How a connection of a scripted peer ended.
public struct ConnectionEnding: Hashable, Sendable {
  /// Who or what ended a connection.
  public enum Reason: Hashable, Sendable {
    /// The other side sent its end.
    case endedByPeer
    /// The system reported an error, such as `ECONNRESET`, on reading or writing.
    case failed(errno: Int32)
    /// The scripted peer closed or reset the connection.
    case closedHere
  }

  /// The number of the connection, from 1.
  public let connection: Int
  /// Who or what ended the connection.
  public let reason: Reason
  /// Why securing the connection failed, or stopped working; nil if that did not end the
  /// connection.
  public let securityFailure: SecurityFailure?
  /// Whether the peer ended the stream without the end of its security (TLS's close_notify), which
  /// anyone on the path can cause. False without security.
  public let isCutOff: Bool
  /// The number of bytes received of a last, incomplete frame.
  public let unfinishedBytes: Int
  /// When the end was noticed, by the clock of the peer's loop.
  public let time: LinkInstant

  init(_ connection: PeerConnection, _ reason: Reason, at time: LinkInstant) {
    self.connection = connection.number
    self.reason = reason
    securityFailure = connection.securityFailure
    isCutOff = connection.isCutOff
    unfinishedBytes = connection.reader.unfinished
    self.time = time
  }
}

/// A snapshot of everything that a scripted peer has received.
public struct PeerRecord: Sendable {
  /// All frames, in the order of arrival.
  public internal(set) var frames: [ReceivedFrame] = []
  /// The requests, with fragments joined, in the order of completion.
  public internal(set) var requests: [ReceivedMessage] = []
  /// The responses, with fragments joined, in the order of completion.
  public internal(set) var responses: [ReceivedMessage] = []
  /// The pushes, with fragments joined, in the order of completion.
  public internal(set) var pushes: [ReceivedMessage] = []
  /// On a server, clients' renewals, whose bodies are credentials; on a client, the answers to
  /// them. In the order of completion.
  public internal(set) var renewals: [ReceivedMessage] = []
  /// The streams, in the order of their first frames.
  public internal(set) var streams: [ReceivedStream] = []
  /// The violations of a dialect in received bytes, each of which dropped a packet or ended a
  /// connection, in the order of arrival.
  public internal(set) var violations: [Violation] = []
  /// The security of connections, by number, from when they are secure.
  public internal(set) var security: [Int: ConnectionSecurity] = [:]
  /// How connections have ended so far, in the order of their ends.
  public internal(set) var endings: [ConnectionEnding] = []
  /// The number of connections so far.
  public internal(set) var connections = 0

  var streamIndices: [StreamKey: Int] = [:]
  private var counts: [WireFrame.Kind: [UInt32: Int]] = [:]

  /// The number of messages of a kind and tag.
  func count(_ kind: WireFrame.Kind, tag: UInt32) -> Int {
    counts[kind]?[tag] ?? 0
  }

  /// The requests of one type, in the order of completion.
  public func requests(of type: MessageType) -> [ReceivedMessage] {
    requests.filter { $0.type == type }
  }

  /// The pushes of one type, in the order of completion.
  public func pushes(of type: MessageType) -> [ReceivedMessage] {
    pushes.filter { $0.type == type }
  }

  /// The fields of the hello on a connection; nil if no valid hello came.
  public func hello(on connection: Int) -> GreetingFields? {
    frames.first { $0.connection == connection && $0.frame.kind == .hello }?.frame.helloFields
  }

  /// The numbers of the connections whose hellos named this client, in the order of the hellos.
  public func connections(of clientID: [UInt8]) -> [Int] {
    frames.filter { $0.frame.kind == .hello && $0.frame.helloFields?.clientID == clientID }
      .map(\.connection)
  }

  /// The frames of one kind, in the order of arrival.
  public func frames(of kind: WireFrame.Kind) -> [WireFrame] {
    frames.filter { $0.frame.kind == kind }.map(\.frame)
  }

  /// Adds a message; returns it with its number.
  mutating func add(
    _ message: WireFrame,
    connection: Int,
    time: LinkInstant
  ) -> ReceivedMessage {
    let number = count(message.kind, tag: message.tag) + 1
    counts[message.kind, default: [:]][message.tag] = number
    let received = ReceivedMessage(
      connection: connection,
      kind: message.kind,
      tag: message.tag,
      serial: message.serial,
      body: message.payload,
      metadata: message.metadata,
      number: number,
      time: time
    )
    switch message.kind {
    case .request: requests.append(received)
    case .response: responses.append(received)
    case .push: pushes.append(received)
    case .renewal: renewals.append(received)
    default: break
    }
    return received
  }
}
