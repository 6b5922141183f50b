// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

// Frames about the link itself. Times are sent in whole milliseconds; nil and 0 stand for defaults.
extension WireFrame {
  /// A client's greeting.
  public static func hello(
    version: UInt32 = 1,
    features: Features = [.metadata, .fragments],
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: Duration? = nil,
    heartbeatTimeout: Duration? = nil,
    credential: [UInt8] = [],
    name: String = ""
  ) -> WireFrame {
    let hello = Hello(
      version: version,
      features: features.rawValue,
      maxBody: maxBody,
      maxInFlight: maxInFlight,
      heartbeatInterval: heartbeatInterval?.wireMilliseconds ?? 0,
      heartbeatTimeout: heartbeatTimeout?.wireMilliseconds ?? 0,
      credential: credential,
      name: name
    )
    return WireFrame(.hello, serial: Wire.handshakeSerial, body: hello.wireBytes)
  }

  /// A server's answer to the greeting.
  public static func welcome(
    version: UInt32 = 1,
    features: Features = [.metadata, .fragments],
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: Duration? = nil,
    heartbeatTimeout: Duration? = nil,
    name: String = ""
  ) -> WireFrame {
    let welcome = Welcome(
      version: version,
      features: features.rawValue,
      maxBody: maxBody,
      maxInFlight: maxInFlight,
      heartbeatInterval: heartbeatInterval?.wireMilliseconds ?? 0,
      heartbeatTimeout: heartbeatTimeout?.wireMilliseconds ?? 0,
      name: name
    )
    return WireFrame(.welcome, serial: Wire.handshakeSerial, body: welcome.wireBytes)
  }

  /// The word that its sender takes nothing new. `requestsAccepted` counts those that it took.
  public static func goAway(
    code: ResponseCode = .draining,
    reason: String = "",
    requestsAccepted: UInt64 = 0,
    spread: Duration? = nil,
    retryAfter: Duration? = nil,
    alternatives: [String] = []
  ) -> WireFrame {
    let goAway = GoAway(
      code: code.rawValue,
      reason: reason,
      requestsAccepted: requestsAccepted,
      spread: spread?.wireMilliseconds ?? 0,
      retryAfter: retryAfter?.wireMilliseconds ?? 0,
      alternatives: alternatives
    )
    return WireFrame(.goaway, serial: Wire.goawaySerial, body: goAway.wireBytes)
  }

  /// What a hello says; nil for other frames and for one that cannot be read.
  public var helloFields: GreetingFields? {
    guard kind == .hello, let hello = Hello(wire: body[...]) else {
      return nil
    }
    return GreetingFields(
      version: hello.version,
      features: Features(rawValue: hello.features),
      maxBody: hello.maxBody,
      maxInFlight: hello.maxInFlight,
      heartbeatInterval: .milliseconds(hello.heartbeatInterval),
      heartbeatTimeout: .milliseconds(hello.heartbeatTimeout),
      credential: hello.credential,
      name: hello.name
    )
  }

  /// What a welcome says; nil for other frames and for one that cannot be read.
  public var welcomeFields: GreetingFields? {
    guard kind == .welcome, let welcome = Welcome(wire: body[...]) else {
      return nil
    }
    return GreetingFields(
      version: welcome.version,
      features: Features(rawValue: welcome.features),
      maxBody: welcome.maxBody,
      maxInFlight: welcome.maxInFlight,
      heartbeatInterval: .milliseconds(welcome.heartbeatInterval),
      heartbeatTimeout: .milliseconds(welcome.heartbeatTimeout),
      credential: [],
      name: welcome.name
    )
  }

  /// What a goaway says; nil for other frames and for one that cannot be read.
  public var goAwayFields: GoAwayFields? {
    guard kind == .goaway, let goAway = GoAway(wire: body[...]) else {
      return nil
    }
    return GoAwayFields(
      code: ResponseCode(rawValue: goAway.code),
      reason: goAway.reason,
      requestsAccepted: goAway.requestsAccepted,
      spread: .milliseconds(goAway.spread),
      retryAfter: .milliseconds(goAway.retryAfter),
      alternatives: goAway.alternatives
    )
  }
}

/// What a hello or a welcome says; what was absent is 0 or empty.
public struct GreetingFields: Hashable, Sendable {
  /// The version of the protocol.
  public let version: UInt32
  /// The features that a client has, or that both sides have.
  public let features: Features
  /// The largest body that the sender accepts, in bytes.
  public let maxBody: UInt32
  /// The most requests at once that the sender accepts.
  public let maxInFlight: UInt32
  /// How long nothing may be read before a ping is sent.
  public let heartbeatInterval: Duration
  /// How long any byte may take to come after that ping.
  public let heartbeatTimeout: Duration
  /// Who a client is, in the application's own form; empty in a welcome.
  public let credential: [UInt8]
  /// What the sender calls itself.
  public let name: String
}

/// What a goaway says; what was absent is 0 or empty.
public struct GoAwayFields: Hashable, Sendable {
  /// Why.
  public let code: ResponseCode
  /// Why, in words.
  public let reason: String
  /// How many requests the sender accepted on this connection.
  public let requestsAccepted: UInt64
  /// Over how long clients are to spread their new connections.
  public let spread: Duration
  /// How long to wait at least before connecting again.
  public let retryAfter: Duration
  /// Other servers to go to.
  public let alternatives: [String]
}
