// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

// Frames about the link itself. Times are sent in whole milliseconds; nil and 0 mean the default.
extension WireFrame {
  /// Makes a client's hello. A `clientID` of another length than 16 bytes is left out.
  ///
  /// Times are sent in milliseconds, rounded up. Numbers of 0 and times of nil or zero mean the
  /// wire's defaults: a `maxBody` of 16,777,216 bytes, a `maxInFlight` of 1,024 requests, a
  /// `heartbeatInterval` of 30 s, a `heartbeatTimeout` of 10 s, and a `streamCredit` of 65,536
  /// bytes.
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

  /// Makes a welcome, a server's response to a hello. A `keySpace` of another length than 16 bytes
  /// is left out.
  ///
  /// Times are sent in milliseconds, rounded up, and `keyTime` is in milliseconds, too. Numbers of
  /// 0 and times of nil or zero mean the wire's defaults, as in a hello. Without
  /// `credentialExpires`, the credential has no end.
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

  /// Makes a goaway. `requestsAccepted` is the number of the receiver's requests on this connection
  /// that the sender has accepted.
  ///
  /// The receiver waits `retryAfter`, and a random part of `spread`, before it connects again; nil
  /// means 0, and both are sent in milliseconds, rounded up. `alternatives` are other servers, as
  /// `host:port`.
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

  /// Makes a frame with which a client renews its credential.
  public static func renewal(_ credential: [UInt8]) -> WireFrame {
    WireFrame(.renewal, body: credential)
  }

  /// Makes a server's answer to a renewal. `credentialExpires` is sent in milliseconds, rounded up;
  /// nil means that the credential has no end.
  public static func renewed(
    _ code: ResponseCode = .ok, credentialExpires: Duration? = nil, reason: String = ""
  ) -> WireFrame {
    let renewed = Renewed(
      credentialExpires: credentialExpires?.wireMilliseconds ?? 0, reason: reason)
    return WireFrame(.renewal, tag: code.rawValue, body: renewed.wireBytes)
  }

  /// The fields of this hello; nil if this is another frame or an invalid hello.
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

  /// The fields of this welcome; nil if this is another frame or an invalid welcome.
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

  /// The fields of this answer to a renewal; nil if this is another frame or an invalid answer.
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
  /// The version of the protocol: in a hello, the highest that the client speaks; in a welcome, the
  /// highest that both sides speak. 0 means 1.
  public let version: UInt32
  /// In a hello, the client's features; in a welcome, the features that both sides have.
  public let features: WireFeatures
  /// The largest body in bytes that the sender accepts; 0 means 16,777,216.
  public let maxBody: UInt32
  /// The most concurrent requests that the sender accepts; 0 means 1,024.
  public let maxInFlight: UInt32
  /// The longest silence after which a ping is sent; zero means 30 seconds.
  public let heartbeatInterval: Duration
  /// The longest time within which any byte has to arrive after a ping; zero means 10 seconds.
  public let heartbeatTimeout: Duration
  /// The client's credential, in the application's own form; empty in a welcome.
  public let credential: [UInt8]
  /// The sender's name, for logs; empty if it has none.
  public let name: String
  /// The first credit in bytes for the items that the sender receives in each stream; 0 means
  /// 65,536.
  public let streamCredit: UInt32
  /// How long the server accepts the client's credential, from the welcome on. Zero means without
  /// an end; it is always zero in a hello.
  public let credentialExpires: Duration
  /// The client's `client_id`, the same on all its connections: 16 bytes. Empty if it has none, and
  /// in a welcome.
  public let clientID: [UInt8]
  /// The name of the space in which the server keeps this client's keys: 16 bytes. Empty if the
  /// server keeps none, and in a hello.
  public let keySpace: [UInt8]
  /// How long the server keeps the answers to this client's requests that run once. Zero if the
  /// server keeps none, and in a hello.
  public let keyRetention: Duration
  /// The time of the store that keeps the answers, in milliseconds. 0 if the server keeps none, and
  /// in a hello.
  public let keyTime: UInt64
}

/// The fields of a server's answer to the renewal of a client's credential. Absent fields are 0 or
/// empty.
public struct RenewedFields: Hashable, Sendable {
  /// The code of the answer: 200 if the server accepts the credential.
  public let code: ResponseCode
  /// How long the server accepts the credential, from the answer on; zero means without an end.
  public let credentialExpires: Duration
  /// Why the server refused the credential, for people to read; empty if it did not say.
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
