// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

// Frames about the link itself. Times are sent in whole milliseconds; nil and 0 mean the default.
extension WireFrame {
  /// Makes a client's hello. A `clientID` of another length than 16 bytes is left out.
  public static func hello(
    version: UInt32 = 1,
    features: WireFeatures = [.metadata, .fragments],
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: Duration? = nil,
    heartbeatTimeout: Duration? = nil,
    credential: [UInt8] = [],
    name: String = "",
    streamCredit: UInt32 = 0,
    clientID: [UInt8] = []
  ) -> WireFrame {
    let hello = Hello(
      version: version,
      features: features.rawValue,
      maxBody: maxBody,
      maxInFlight: maxInFlight,
      heartbeatInterval: heartbeatInterval?.wireMilliseconds ?? 0,
      heartbeatTimeout: heartbeatTimeout?.wireMilliseconds ?? 0,
      credential: credential,
      name: name,
      streamCredit: streamCredit,
      clientID: ClientID(clientID)
    )
    return WireFrame(.hello, serial: Wire.handshakeSerial, body: hello.wireBytes)
  }

  /// Makes a server's response to a hello. A `keySpace` whose length is not 16 bytes is left out.
  public static func welcome(
    version: UInt32 = 1,
    features: WireFeatures = [.metadata, .fragments],
    maxBody: UInt32 = 0,
    maxInFlight: UInt32 = 0,
    heartbeatInterval: Duration? = nil,
    heartbeatTimeout: Duration? = nil,
    name: String = "",
    streamCredit: UInt32 = 0,
    credentialExpires: Duration? = nil,
    keySpace: [UInt8] = [],
    keyRetention: Duration? = nil,
    keyTime: UInt64 = 0
  ) -> WireFrame {
    let welcome = Welcome(
      version: version,
      features: features.rawValue,
      maxBody: maxBody,
      maxInFlight: maxInFlight,
      heartbeatInterval: heartbeatInterval?.wireMilliseconds ?? 0,
      heartbeatTimeout: heartbeatTimeout?.wireMilliseconds ?? 0,
      name: name,
      streamCredit: streamCredit,
      credentialExpires: credentialExpires?.wireMilliseconds ?? 0,
      keySpace: KeySpace(keySpace),
      keyRetention: keyRetention?.wireMilliseconds ?? 0,
      keyTime: keyTime
    )
    return WireFrame(.welcome, serial: Wire.handshakeSerial, body: welcome.wireBytes)
  }

  /// Makes a goaway. `requestsAccepted` is the number of requests that its sender has accepted.
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

  /// Makes a client's frame that renews its credential.
  public static func renewal(_ credential: [UInt8]) -> WireFrame {
    WireFrame(.renewal, body: credential)
  }

  /// Makes a server's answer to a client's renewal.
  public static func renewed(
    _ code: ResponseCode = .ok, credentialExpires: Duration? = nil, reason: String = ""
  ) -> WireFrame {
    let renewed = Renewed(
      credentialExpires: credentialExpires?.wireMilliseconds ?? 0, reason: reason)
    return WireFrame(.renewal, tag: code.rawValue, body: renewed.wireBytes)
  }

  /// The fields of a hello; nil for other frames and invalid hellos.
  public var helloFields: GreetingFields? {
    guard kind == .hello, let hello = Hello(wire: body[...]) else {
      return nil
    }
    return GreetingFields(
      version: hello.version,
      features: WireFeatures(rawValue: hello.features),
      maxBody: hello.maxBody,
      maxInFlight: hello.maxInFlight,
      heartbeatInterval: .milliseconds(hello.heartbeatInterval),
      heartbeatTimeout: .milliseconds(hello.heartbeatTimeout),
      credential: hello.credential,
      name: hello.name,
      streamCredit: hello.streamCredit,
      credentialExpires: .zero,
      clientID: hello.clientID?.bytes ?? [],
      keySpace: [],
      keyRetention: .zero,
      keyTime: 0
    )
  }

  /// The fields of a welcome; nil for other frames and invalid welcomes.
  public var welcomeFields: GreetingFields? {
    guard kind == .welcome, let welcome = Welcome(wire: body[...]) else {
      return nil
    }
    return GreetingFields(
      version: welcome.version,
      features: WireFeatures(rawValue: welcome.features),
      maxBody: welcome.maxBody,
      maxInFlight: welcome.maxInFlight,
      heartbeatInterval: .milliseconds(welcome.heartbeatInterval),
      heartbeatTimeout: .milliseconds(welcome.heartbeatTimeout),
      credential: [],
      name: welcome.name,
      streamCredit: welcome.streamCredit,
      credentialExpires: .milliseconds(welcome.credentialExpires),
      clientID: [],
      keySpace: welcome.keySpace?.bytes ?? [],
      keyRetention: .milliseconds(welcome.keyRetention),
      keyTime: welcome.keyTime
    )
  }

  /// The fields of a server's answer to a renewal; nil for other frames and invalid answers.
  public var renewedFields: RenewedFields? {
    guard kind == .renewal, let renewed = Renewed(wire: body[...]) else { return nil }
    return RenewedFields(
      code: code, credentialExpires: .milliseconds(renewed.credentialExpires),
      reason: renewed.reason)
  }

  /// The fields of a goaway; nil for other frames and invalid goaways.
  package var goAwayFields: GoAwayFields? {
    guard kind == .goaway, let goAway = GoAway(wire: body[...]) else {
      return nil
    }
    return GoAwayFields(
      code: ResponseCode(wire: goAway.code),
      reason: goAway.reason,
      requestsAccepted: goAway.requestsAccepted,
      spread: .milliseconds(goAway.spread),
      retryAfter: .milliseconds(goAway.retryAfter),
      alternatives: goAway.alternatives
    )
  }
}

/// The fields of a hello or a welcome. Absent fields are 0 or empty.
public struct GreetingFields: Hashable, Sendable {
  /// The version of the protocol.
  public let version: UInt32
  /// The client's features in a hello, or the common features in a welcome.
  public let features: WireFeatures
  /// The largest body in bytes that the sender accepts.
  public let maxBody: UInt32
  /// The most concurrent requests that the sender accepts.
  public let maxInFlight: UInt32
  /// The silence after which a ping is sent.
  public let heartbeatInterval: Duration
  /// The time within which any byte has to arrive after a ping.
  public let heartbeatTimeout: Duration
  /// The client's credential, in the application's own form; empty in a welcome.
  public let credential: [UInt8]
  /// The sender's name.
  public let name: String
  /// The first credit for the items that the sender receives in each stream, in bytes.
  public let streamCredit: UInt32
  /// How long the server accepts the client's credential; zero in a hello.
  public let credentialExpires: Duration
  /// The client's `client_id`, the same on all its connections: 16 bytes, or none.
  public let clientID: [UInt8]
  /// Where the client's keys are kept: 16 bytes, or none; none in a hello.
  public let keySpace: [UInt8]
  /// How long the server keeps answers under the client's keys; zero in a hello.
  public let keyRetention: Duration
  /// The time of the store that keeps answers under the client's keys, in milliseconds; 0 in a
  /// hello.
  public let keyTime: UInt64
}

/// A server's answer to the renewal of a client's credential. Absent fields are 0 or empty.
public struct RenewedFields: Hashable, Sendable {
  /// 200 if the server accepts the credential.
  public let code: ResponseCode
  /// How long the server accepts the credential, from the answer on; zero for no end.
  public let credentialExpires: Duration
  /// Why the server refused the credential, for people to read.
  public let reason: String
}

/// The fields of a goaway. Absent fields are 0 or empty.
package struct GoAwayFields: Hashable, Sendable {
  /// The reason as a code.
  package let code: ResponseCode
  /// The reason as a text.
  package let reason: String
  /// The number of requests that the sender accepted on this connection.
  package let requestsAccepted: UInt64
  /// The time over which clients spread their new connections.
  package let spread: Duration
  /// The least time to wait before reconnecting.
  package let retryAfter: Duration
  /// Other servers to connect to.
  package let alternatives: [String]
}
