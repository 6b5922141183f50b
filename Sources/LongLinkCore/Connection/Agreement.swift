// SPDX-License-Identifier: Apache-2.0

/// What the two sides of a connection have agreed on in their greeting, or the defaults.
package struct Agreement: Equatable, Sendable {
  package var features: Features = []
  /// The largest body that the peer accepts, in bytes, including metadata.
  package var maxBody = Int(Wire.defaultBody)
  /// The most requests of this side that the peer runs concurrently.
  package var maxInFlight = Int(Wire.defaultInFlight)
  package var heartbeatInterval: Int64
  package var heartbeatTimeout: Int64
  /// The first credit, in bytes, of each request of this side with items.
  package var streamCredit = Int(Wire.defaultCredit)
  /// How long the server accepts this client's credential, in milliseconds; 0 without an end.
  package var credentialExpires: UInt32 = 0
  /// The server's terms for requests of the client that run once; nil if they cannot run once.
  package var once: OnceTerms?
  /// The peer's name, truncated to the length that a configuration can have.
  package var name = ""

  /// Makes the agreement that holds before the greeting.
  init(_ settings: ConnectionSettings) {
    heartbeatInterval = settings.heartbeatInterval
    heartbeatTimeout = settings.heartbeatTimeout
  }

  /// Agrees to a client's hello and to these features. Returns the version to answer with.
  mutating func accept(
    _ hello: Hello, features: Features, _ settings: ConnectionSettings
  ) -> UInt32 {
    self.features = features
    accept(
      maxBody: hello.maxBody, maxInFlight: hello.maxInFlight, streamCredit: hello.streamCredit,
      name: hello.name)
    accept(interval: hello.heartbeatInterval, timeout: hello.heartbeatTimeout, settings)
    return min(hello.version.or(Wire.version), Wire.version)
  }

  /// Agrees to a server's welcome. Throws if it breaks a rule.
  mutating func accept(
    _ welcome: Welcome, _ settings: ConnectionSettings, at now: LinkInstant
  ) throws(Violation) {
    let kind = FrameKind.welcome.rawValue
    let features = Features(rawValue: welcome.features)
    guard features.isSubset(of: settings.usable), features.withNeeds == features else {
      throw Violation(.featureNotOffered, kind: kind, value: welcome.features)
    }
    guard welcome.version <= Wire.version else {
      throw Violation(.versionNotOffered, kind: kind, value: UInt64(welcome.version))
    }
    once = try OnceTerms(welcome, readAt: now)
    self.features = features
    accept(
      maxBody: welcome.maxBody, maxInFlight: welcome.maxInFlight,
      streamCredit: welcome.streamCredit, name: welcome.name)
    credentialExpires = welcome.credentialExpires
    // A server that ignored the hello may state longer ones; this side's own limits hold.
    accept(interval: welcome.heartbeatInterval, timeout: welcome.heartbeatTimeout, settings)
  }

  private mutating func accept(
    maxBody: UInt32, maxInFlight: UInt32, streamCredit: UInt32, name: String
  ) {
    self.maxBody = Int(maxBody.or(Wire.defaultBody))
    self.maxInFlight = Int(maxInFlight.or(Wire.defaultInFlight))
    self.streamCredit = min(Int(streamCredit.or(Wire.defaultCredit)), Wire.mostCredit)
    self.name = name.cutToName
  }

  /// Takes the smaller heartbeat of both sides.
  private mutating func accept(
    interval: UInt32, timeout: UInt32, _ settings: ConnectionSettings
  ) {
    let own = (
      UInt32(clamping: settings.heartbeatInterval / 1_000_000),
      UInt32(clamping: settings.heartbeatTimeout / 1_000_000)
    )
    let interval = max(min(interval.or(Wire.defaultInterval), own.0), Wire.shortestInterval)
    let timeout = max(min(timeout.or(Wire.defaultTimeout), own.1), Wire.shortestTimeout)
    heartbeatInterval = Int64(interval) * 1_000_000
    heartbeatTimeout = Int64(timeout) * 1_000_000
  }

  /// The welcome of a server that states these features.
  func welcome(
    version: UInt32, features: Features, expiresIn: UInt32, _ settings: ConnectionSettings
  ) -> Welcome {
    Welcome(
      version: version, features: features.rawValue,
      maxBody: UInt32(clamping: settings.maxBody),
      maxInFlight: UInt32(clamping: settings.maxInFlight),
      heartbeatInterval: UInt32(clamping: heartbeatInterval / 1_000_000),
      heartbeatTimeout: UInt32(clamping: heartbeatTimeout / 1_000_000),
      name: settings.name,
      streamCredit: self.features.contains(.streams) ? settings.statedCredit : 0,
      credentialExpires: expiresIn,
      keySpace: once?.space, keyRetention: once?.retention ?? 0, keyTime: once?.time ?? 0)
  }
}

extension ConnectionSettings {
  /// The hello of a client with these settings.
  var hello: Hello {
    Hello(
      version: Wire.version,
      features: usable.withNeeds.rawValue,
      maxBody: UInt32(clamping: maxBody),
      maxInFlight: UInt32(clamping: maxInFlight),
      heartbeatInterval: UInt32(clamping: heartbeatInterval / 1_000_000),
      heartbeatTimeout: UInt32(clamping: heartbeatTimeout / 1_000_000),
      credential: credential, name: name, streamCredit: statedCredit, clientID: clientID)
  }

  /// The features that this side can use on its connection: a client without a credential has
  /// nothing to renew, and a server that lets everyone in has nothing to decide.
  var usable: Features {
    let renews = !isShort && (role == .client ? !credential.isEmpty : identifies)
    let usable = usesOnce ? features : features.subtracting(.once)
    return renews ? usable : usable.subtracting(.renewal)
  }

  /// The stream credit that this side states, if it supports streams.
  fileprivate var statedCredit: UInt32 {
    features.withNeeds.contains(.streams) ? UInt32(clamping: windows.first) : 0
  }
}

extension String {
  /// A text of the peer, or of the application for the peer, truncated to the length limit of
  /// names. U+FFFD takes the place of U+0000, which no control message can contain.
  var cutToName: String {
    let text =
      utf8.count <= Wire.nameLimit
      ? self : String(decoding: utf8.prefix(Wire.nameLimit), as: UTF8.self)
    guard text.utf8.contains(0) else { return text }
    return String(
      String.UnicodeScalarView(text.unicodeScalars.map { $0.value == 0 ? "\u{FFFD}" : $0 }))
  }
}

extension UInt32 {
  /// The number, or `fallback` for 0, which is an absent field on the wire.
  fileprivate func or(_ fallback: UInt32) -> UInt32 { self == 0 ? fallback : self }
}
