// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// One frame that a scripted peer received.
public struct ReceivedFrame: Hashable, Sendable {
  /// Which connection it came on; they count from 1.
  public let connection: Int
  /// The frame, whatever it holds.
  public let frame: WireFrame
  /// Whether its checksum was right.
  public let isIntact: Bool
  /// When it was read, by the clock of the peer's loop.
  public let time: LinkInstant
}

/// One message that a scripted peer received: an undamaged frame, or fragments that were joined.
public struct ReceivedMessage: Hashable, Sendable {
  /// Which connection it came on; they count from 1.
  public let connection: Int
  /// What it is: a request, a response or a push.
  public let kind: WireFrame.Kind
  /// The message type, or the code and refused bit of a response.
  public let tag: UInt32
  /// Which exchange it belongs to.
  public let serial: UInt32
  /// What it carries, without metadata.
  public let body: [UInt8]
  /// The metadata, where it had some that can be read.
  public let metadata: WireMetadata?
  /// Counts the messages of this kind and tag on all connections, from 1.
  public let number: Int
  /// When its last byte was read, by the clock of the peer's loop.
  public let time: LinkInstant

  /// The type of a request or push.
  public var type: MessageType { MessageType(tag: tag) }
  /// The code of a response.
  public var code: ResponseCode { ResponseCode(rawValue: tag & Wire.codeMask) }
  /// Whether a response says that no handler was called.
  public var isRefused: Bool { tag & Wire.refusedBit != 0 }
  /// The body as text, with replacements where it is not UTF-8.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// How a connection of a scripted peer ended.
public struct ConnectionEnding: Hashable, Sendable {
  /// Who or what ended it.
  public enum Reason: Hashable, Sendable {
    /// The other side sent its end.
    case endedByPeer
    /// The system reported an error, such as `ECONNRESET`, on reading or writing.
    case failed(errno: Int32)
    /// The scripted peer closed or reset it.
    case closedHere
  }

  /// Which connection; they count from 1.
  public let connection: Int
  /// Who or what ended it.
  public let reason: Reason
  /// Bytes of a frame that had begun to come and was never whole.
  public let unfinishedBytes: Int
  /// When it was noticed, by the clock of the peer's loop.
  public let time: LinkInstant
}

/// What a scripted peer has received up to one moment.
public struct PeerRecord: Sendable {
  /// All frames, in the order in which they came.
  public internal(set) var frames: [ReceivedFrame] = []
  /// The requests, fragments joined, in the order in which they were whole.
  public internal(set) var requests: [ReceivedMessage] = []
  /// The responses, fragments joined, in the order in which they were whole.
  public internal(set) var responses: [ReceivedMessage] = []
  /// The pushes, fragments joined, in the order in which they were whole.
  public internal(set) var pushes: [ReceivedMessage] = []
  /// In a dialect, what was wrong with bytes that came: packets that were dropped, or what ended a
  /// connection.
  public internal(set) var violations: [Violation] = []
  /// The connections that ended.
  public internal(set) var endings: [ConnectionEnding] = []
  /// How many connections there were.
  public internal(set) var connections = 0

  private var counts: [WireFrame.Kind: [UInt32: Int]] = [:]

  /// How many messages of a kind and tag came.
  func count(_ kind: WireFrame.Kind, tag: UInt32) -> Int {
    counts[kind]?[tag] ?? 0
  }

  /// The requests of one type.
  public func requests(of type: MessageType) -> [ReceivedMessage] {
    requests.filter { $0.type == type }
  }

  /// The pushes of one type.
  public func pushes(of type: MessageType) -> [ReceivedMessage] {
    pushes.filter { $0.type == type }
  }

  /// The frames of one kind.
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
    default: break
    }
    return received
  }
}
