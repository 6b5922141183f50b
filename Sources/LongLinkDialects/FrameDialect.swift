// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A framed protocol as data: how its frames lie in the bytes, and what their numbers mean.
///
/// What the native protocol says with a kind, others say with types and serials. A dialect is
/// checked when it is made: one that would take one thing for another is refused with the reason.
public struct FrameDialect: Hashable, Sendable {
  /// The protocol's name: 1 to 32 letters, digits, - and _ of ASCII.
  public let name: String
  /// How frames lie in the bytes.
  public let layout: FrameLayout
  /// Which serials requests bear.
  public let serials: Serials
  /// Which type a response bears.
  public let responseType: ResponseType
  /// Which frames are heartbeats.
  public let heartbeat: HeartbeatFrames
  /// Which types are pushes.
  public let pushes: Pushes
  /// How a request is cancelled; nil where the protocol cannot.
  public let cancel: Cancel?
  /// What codes mean; nil where the layout has none, and every response is a success.
  public let codes: Codes?
  /// What a response means whose serial no request has.
  public let unknownSerial: UnknownSerial
  /// The largest body of a frame, in bytes: 1 to 1,073,741,824.
  public let maximumBody: Int

  /// Makes a dialect. Throws when it cannot work, naming the part that is at fault.
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
    self.init(
      unchecked: name, layout, serials, responseType, heartbeat, pushes, cancel, codes,
      unknownSerial,
      maximumBody)
    try validate()
  }

  /// Takes parts that are known to work together.
  init(
    unchecked name: String, _ layout: FrameLayout, _ serials: Serials, _ responseType: ResponseType,
    _ heartbeat: HeartbeatFrames, _ pushes: Pushes, _ cancel: Cancel?, _ codes: Codes?,
    _ unknownSerial: UnknownSerial, _ maximumBody: Int
  ) {
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
  }
}

extension FrameDialect {
  /// Which serials requests bear: from the first of a range to its last, and then again.
  public struct Serials: Hashable, Sendable {
    /// Those of a client's requests; 0 is none.
    public let client: ClosedRange<UInt32>
    /// Those of a server's requests, apart from a client's; nil where a server may not ask.
    public let server: ClosedRange<UInt32>?

    /// Makes the ranges; they are checked when a dialect is made of them.
    public init(client: ClosedRange<UInt32>, server: ClosedRange<UInt32>? = nil) {
      self.client = client
      self.server = server
    }

    package subscript(role: Role) -> ClosedRange<UInt32>? { role == .client ? client : server }
  }

  /// Which type a response bears.
  public enum ResponseType: Hashable, Sendable {
    /// That of its request.
    case echo
    /// That of its request plus a number.
    case offset(UInt32)
    /// Always the same.
    case fixed(UInt32)
    /// None: responses have no type field.
    case absent
  }

  /// Which frames are heartbeats, and when they are due.
  public struct HeartbeatFrames: Hashable, Sendable {
    /// A client's ping and its answer; nil where a client sends none.
    public let client: Ping?
    /// A server's ping and its answer; nil where a server sends none.
    public let server: Ping?
    /// The silence before a ping: 200 ms to a day.
    public let interval: Duration
    /// How long a silence may last beyond that before the peer is dead: 100 ms to a day.
    public let timeout: Duration

    /// Makes the rules for heartbeats; they are checked when a dialect is made of them.
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

  /// A frame that asks for a sign of life. Its answer has the same serial and no body.
  public struct Ping: Hashable, Sendable {
    /// The type of the ping.
    public let type: UInt32
    /// The serials that it may bear; they are counted through. One alone is always the same.
    public let serials: ClosedRange<UInt32>
    /// The type of the answer; nil where nobody answers.
    public let answer: UInt32?

    /// Makes the rules for a ping; without an answer's type it is echoed as it is.
    public init(type: UInt32, serials: ClosedRange<UInt32>) {
      self.init(type: type, serials: serials, answer: type)
    }

    /// Makes the rules for a ping with an answer of another type, or with none.
    public init(type: UInt32, serials: ClosedRange<UInt32>, answer: UInt32?) {
      self.type = type
      self.serials = serials
      self.answer = answer
    }
  }

  /// Which types are pushes: one-way messages.
  public struct Pushes: Hashable, Sendable {
    /// The types of a server's pushes.
    public let fromServer: [ClosedRange<UInt32>]
    /// The types of a client's pushes.
    public let fromClient: [ClosedRange<UInt32>]
    /// The serial that a push is sent with; a receiver does not look at it.
    public let serial: UInt32

    /// Makes the rules for pushes; they are checked when a dialect is made of them.
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
    /// How the cancelled request is named.
    public enum Target: String, Hashable, Sendable, CaseIterable {
      /// By its serial, in the serial field.
      case serial
      /// By its type, in the serial field: all running requests of that type are meant.
      case type
      /// By its serial in the body, as wide and in the order of the serial field, which holds 0.
      case body
    }

    /// The type of a cancel.
    public let type: UInt32
    /// How it names the request.
    public let target: Target

    /// Makes the rule for cancels; it is checked when a dialect is made of it.
    public init(type: UInt32, target: Target) {
      self.type = type
      self.target = target
    }
  }

  /// What a response means whose serial no request has.
  public enum UnknownSerial: String, Hashable, Sendable, CaseIterable {
    /// The peer broke a rule: the connection closes.
    case violation
    /// It is late, or of no interest: it is dropped and counted.
    case drop
    /// It is a server's ping, and is answered like one.
    case heartbeat
  }
}
