// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// One frame that a scripted peer received.
public struct ReceivedFrame: Hashable, Sendable {
  /// The number of the connection on which the frame arrived, from 1.
  public let connection: Int
  /// The frame, even if it is invalid.
  public let frame: WireFrame
  /// Whether the frame's checksum was correct. In a dialect it is always true: damaged packets are
  /// not recorded as frames.
  public let isIntact: Bool
  /// When the frame was read, by the clock of the peer's loop.
  public let time: LinkInstant
}

/// One whole message that a scripted peer received: an undamaged frame, or joined fragments.
/// Renewals of credentials and the answers to them count as messages, too.
public struct ReceivedMessage: Hashable, Sendable {
  /// The number of the connection on which the message arrived, from 1.
  public let connection: Int
  /// The kind: request, response, push or renewal.
  public let kind: WireFrame.Kind
  /// The tag of the frame: the message type of a request or push, the code and the refused bit of a
  /// response, or the code of the answer to a renewal.
  public let tag: UInt32
  /// The serial, which links a response to its request. A correct peer sends all pushes with the
  /// same serial.
  public let serial: UInt32
  /// The body, without metadata.
  public let body: [UInt8]
  /// The metadata; nil if the message has none, or if it is invalid.
  public let metadata: WireMetadata?
  /// The position of the message among all messages of its kind and tag, on all connections, from
  /// 1.
  public let number: Int
  /// When the message's last byte was read, by the clock of the peer's loop.
  public let time: LinkInstant

  /// The message type of a request or push; meaningless for other kinds.
  public var type: MessageType { MessageType(tag: tag) }
  /// The code of a response, or of the answer to a renewal; meaningless for other kinds.
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
    /// The other side ended its stream.
    case endedByPeer
    /// The system reported an error, such as `ECONNRESET`, on reading or writing.
    case failed(errno: Int32)
    /// The scripted peer closed or reset the connection. It also closes after bytes that are not
    /// valid in its dialect.
    case closedHere
  }

  /// The number of the connection, from 1.
  public let connection: Int
  /// Who or what ended the connection.
  public let reason: Reason
  /// Why the connection could not be secured, or is no longer secure; nil without such a failure.
  public let securityFailure: SecurityFailure?
  /// Whether the peer ended the stream without the end of its security (TLS's close_notify), which
  /// anyone on the path can cause. False without security.
  public let isCutOff: Bool
  /// The number of received bytes that belong to an incomplete last frame.
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
  /// All frames, damaged ones included, in the order of arrival.
  public internal(set) var frames: [ReceivedFrame] = []
  /// The requests, with fragments joined, in the order of completion.
  public internal(set) var requests: [ReceivedMessage] = []
  /// The responses, with fragments joined, in the order of completion.
  public internal(set) var responses: [ReceivedMessage] = []
  /// The pushes, with fragments joined, in the order of completion.
  public internal(set) var pushes: [ReceivedMessage] = []
  /// On a server, the renewals of clients, with the new credentials as bodies; on a client, the
  /// server's answers to renewals. In the order of arrival.
  public internal(set) var renewals: [ReceivedMessage] = []
  /// The streams, in the order of their first frames.
  public internal(set) var streams: [ReceivedStream] = []
  /// On a server with a dialect, the violations of the dialect in received bytes, in the order of
  /// arrival. Each has dropped a packet or ended a connection.
  public internal(set) var violations: [Violation] = []
  /// The security of each connection, by the connection's number. It appears when the connection
  /// has become secure, and stays after its end.
  public internal(set) var security: [Int: ConnectionSecurity] = [:]
  /// How connections have ended so far, in the order of their ends.
  public internal(set) var endings: [ConnectionEnding] = []
  /// The number of connections made so far, including those that have ended.
  public internal(set) var connections = 0

  var streamIndices: [StreamKey: Int] = [:]
  private var counts: [WireFrame.Kind: [UInt32: Int]] = [:]

  /// The number of messages of a kind and tag.
  func count(_ kind: WireFrame.Kind, tag: UInt32) -> Int {
    counts[kind]?[tag] ?? 0
  }

  /// Returns the requests of one type, in the order of completion.
  public func requests(of type: MessageType) -> [ReceivedMessage] {
    requests.filter { $0.type == type }
  }

  /// Returns the pushes of one type, in the order of completion.
  public func pushes(of type: MessageType) -> [ReceivedMessage] {
    pushes.filter { $0.type == type }
  }

  /// Returns the fields of the first hello on a connection; nil if there is none, or if it is
  /// invalid.
  public func hello(on connection: Int) -> GreetingFields? {
    frames.first { $0.connection == connection && $0.frame.kind == .hello }?.frame.helloFields
  }

  /// Returns the numbers of the connections whose hellos contained this `client_id`, in the order
  /// of the hellos.
  public func connections(of clientID: [UInt8]) -> [Int] {
    frames.filter { $0.frame.kind == .hello && $0.frame.helloFields?.clientID == clientID }
      .map(\.connection)
  }

  /// Returns the frames of one kind, damaged ones included, in the order of arrival.
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
