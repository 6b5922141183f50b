// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The description of a framed protocol: the layout of its frames, and the meaning of their fields.
///
/// The native protocol has a field for the kind of a frame; other protocols distinguish kinds by
/// type and serial. Making a dialect checks the whole description, and throws a
/// ``FrameLayoutError`` if it cannot work, or if the kind of a frame would be ambiguous.
public struct FrameDialect: Hashable, Sendable {
  /// The protocol's name: 1 to 32 ASCII letters, digits, - and _.
  public let name: String
  /// The layout of frames.
  public let layout: FrameLayout
  /// The serials of requests.
  public let serials: Serials
  /// The rule for the type of a response. Default: that of its request.
  public let responseType: ResponseType
  /// The frames and times of the heartbeat. By default, neither side sends pings.
  public let heartbeat: HeartbeatFrames
  /// The types of pushes. By default, there are no pushes.
  public let pushes: Pushes
  /// How a request is cancelled; nil if the protocol has no cancel.
  public let cancel: Cancel?
  /// The meaning of codes; nil if the layout has no code, so that every response is a success.
  public let codes: Codes?
  /// The meaning of a response whose serial matches no request. Default `drop`.
  public let unknownSerial: UnknownSerial
  /// The largest body of a frame, in bytes: 1 to 1,073,741,824. Default 16,777,216; the JSON form
  /// has no default.
  public let maximumBody: Int

  /// Makes a dialect. Throws `FrameLayoutError`, which names the wrong part, if it cannot work.
  public init(
    name: String = "custom",
    layout: FrameLayout,
    serials: Serials,
    responseType: ResponseType = .echo,
    heartbeat: HeartbeatFrames = HeartbeatFrames(),
    pushes: Pushes = Pushes(),
    cancel: Cancel? = nil,
    codes: Codes? = nil,
    unknownSerial: UnknownSerial = .drop,
    maximumBody: Int = 16_777_216
  ) throws(FrameLayoutError) {
    self.name = name
    self.layout = layout
    self.serials = serials
    self.responseType = responseType
    self.heartbeat = heartbeat
    self.pushes = pushes
    self.cancel = cancel
    self.codes = codes
    self.unknownSerial = unknownSerial
    self.maximumBody = maximumBody
    try validate()
  }
}

extension FrameDialect {
  /// The ranges of request serials. Each is used in order, and then again from the start.
  public struct Serials: Hashable, Sendable {
    /// The serials of a client's requests: at least two, without 0.
    public let client: ClosedRange<UInt32>
    /// The serials of a server's requests: at least two, without 0, and none of the client's. Nil
    /// if a server cannot send requests.
    public let server: ClosedRange<UInt32>?

    /// Makes the ranges; they are checked when a dialect is made from them.
    public init(client: ClosedRange<UInt32>, server: ClosedRange<UInt32>? = nil) {
      self.client = client
      self.server = server
    }

    package subscript(role: Role) -> ClosedRange<UInt32>? { role == .client ? client : server }
  }

  /// The rule for the type of a response.
  public enum ResponseType: Hashable, Sendable {
    /// A response has the type of its request.
    case echo
    /// The type of a response is that of its request plus this number.
    case offset(UInt32)
    /// All responses have this type.
    case fixed(UInt32)
    /// Responses have no type: the layout's `response` has no type field.
    case absent
  }

  /// The frames of the heartbeat, and its times.
  public struct HeartbeatFrames: Hashable, Sendable {
    /// A client's ping and its answer; nil if a client sends none.
    public let client: Ping?
    /// A server's ping and its answer; nil if a server sends none.
    public let server: Ping?
    /// The time between two pings of a side: 200 ms to a day, in whole milliseconds. Default 30 s.
    public let interval: Duration
    /// How long nothing may arrive after a ping before the peer is considered lost: 100 ms to a
    /// day, in whole milliseconds. Default 10 s.
    ///
    /// For a side that only receives pings, it is the interval plus this time after the last byte.
    public let timeout: Duration

    /// Makes the rules for heartbeats; they are checked when a dialect is made from them.
    public init(
      client: Ping? = nil, server: Ping? = nil, interval: Duration = .seconds(30),
      timeout: Duration = .seconds(10)
    ) {
      self.client = client
      self.server = server
      self.interval = interval
      self.timeout = timeout
    }

    package subscript(role: Role) -> Ping? { role == .client ? client : server }
  }

  /// The rules for the pings of one side. The answer to a ping has its serial and no body.
  public struct Ping: Hashable, Sendable {
    /// The number in the type field of a ping.
    public let type: UInt32
    /// The serials of pings. They are used in order, and then again from the start.
    public let serials: ClosedRange<UInt32>
    /// The number in the type field of a ping's answer; nil if pings are not answered.
    public let answer: UInt32?

    /// Makes the rules for a ping whose answer has the same type.
    public init(type: UInt32, serials: ClosedRange<UInt32>) {
      self.init(type: type, serials: serials, answer: type)
    }

    /// Makes the rules for a ping with an answer of another type, or without an answer.
    public init(type: UInt32, serials: ClosedRange<UInt32>, answer: UInt32?) {
      self.type = type
      self.serials = serials
      self.answer = answer
    }
  }

  /// The types of pushes, which are messages without a response. A type is at most 16,777,215.
  public struct Pushes: Hashable, Sendable {
    /// The types of a server's pushes; empty if it sends none.
    public let fromServer: [ClosedRange<UInt32>]
    /// The types of a client's pushes; empty if it sends none.
    public let fromClient: [ClosedRange<UInt32>]
    /// The serial that pushes are sent with; receivers ignore it. Default 0.
    public let serial: UInt32

    /// Makes the rules for pushes; they are checked when a dialect is made from them.
    public init(
      fromServer: [ClosedRange<UInt32>] = [], fromClient: [ClosedRange<UInt32>] = [],
      serial: UInt32 = 0
    ) {
      self.fromServer = fromServer
      self.fromClient = fromClient
      self.serial = serial
    }

    package subscript(role: Role) -> [ClosedRange<UInt32>] {
      role == .client ? fromClient : fromServer
    }
  }

  /// How a request is cancelled.
  public struct Cancel: Hashable, Sendable {
    /// How a cancel identifies the request.
    package enum Target: String, Hashable, Sendable, CaseIterable {
      /// The serial field of the cancel has the serial of the request.
      case serial
      /// The serial field of the cancel has the type of the request: all running requests of that
      /// type are cancelled.
      case type
      /// The body of the cancel has the serial of the request, encoded like the serial field, which
      /// contains 0.
      case body
    }

    /// The number in the type field of a cancel.
    public let type: UInt32
    /// How a cancel identifies the request.
    package let target: Target

    package init(type: UInt32, target: Target) {
      self.type = type
      self.target = target
    }

    /// Makes the rule for cancels whose serial field has the serial of the request. It is checked
    /// when a dialect is made from it.
    public static func bySerial(type: UInt32) -> Cancel { Cancel(type: type, target: .serial) }

    /// Makes the rule for cancels whose serial field has the type of the request: all running
    /// requests of that type are cancelled. It is checked when a dialect is made from it.
    public static func byType(type: UInt32) -> Cancel { Cancel(type: type, target: .type) }

    /// Makes the rule for cancels whose body has the serial of the request, encoded like the serial
    /// field, which contains 0. It is checked when a dialect is made from it.
    public static func byBody(type: UInt32) -> Cancel { Cancel(type: type, target: .body) }
  }

  /// The meaning of a response whose serial matches no request.
  public enum UnknownSerial: String, Hashable, Sendable, CaseIterable {
    /// The response is a violation, which closes the connection. In a layout with a delimiter, a
    /// response whose serial is in no range is only dropped, as a damaged packet.
    case violation
    /// The response is dropped, and counted in `ConnectionCounters.droppedUnknownSerials`.
    case drop
    /// A client takes the response for a server's ping, and answers it. On a server, it is a
    /// violation. The description must have a server's ping with an answer.
    case heartbeat
  }
}
