// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Notes that the stream is connected. A client sends its hello; a dialect has no handshake and
  /// is open at once.
  package mutating func connected(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard phase == .fresh else { return }
    guard let dialect = framing.dialect else {
      guard settings.role == .client else { return }
      send(.hello, ownHello)
      if let features = carriage.featuresWithHello(of: settings.features) {
        agreement.features = features
        open()
      }
      return
    }
    dialect.lastPing = self.now
    liveness.begin(at: self.now)
    if settings.identifies { identify(Greeting()) } else { open() }
  }

  /// The hello of this client.
  var ownHello: Hello {
    Hello(
      version: Wire.version,
      features: settings.features.withNeeds.rawValue,
      maxBody: UInt32(clamping: settings.maxBody),
      maxInFlight: UInt32(clamping: settings.maxInFlight),
      heartbeatInterval: UInt32(clamping: settings.heartbeatInterval / 1_000_000),
      heartbeatTimeout: UInt32(clamping: settings.heartbeatTimeout / 1_000_000),
      credential: settings.credential, name: settings.name, streamCredit: ownStreamCredit)
  }

  /// The stream credit that this side states, if it supports streams.
  private var ownStreamCredit: UInt32 {
    settings.features.withNeeds.contains(.streams) ? UInt32(clamping: settings.windows.first) : 0
  }

  /// Opens a server's connection if the client's first frame is not a hello: it skips the
  /// handshake.
  mutating func acceptFirst(_ head: FrameHead) throws(Violation) {
    guard settings.role == .server, head.kind != .hello else { return }
    open()
  }

  /// Processes a hello, and sends the welcome unless the client has to be identified first.
  mutating func acceptHello(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard settings.role == .server, !heardHello else { throw Violation(.unexpectedHello, head) }
    guard phase == .fresh else { throw Violation(.helloNotFirst, head) }
    let hello: Hello = try decode(body, of: head)
    heardHello = true
    agreement.features = carriage.agree(
      on: Features(rawValue: hello.features), of: settings.features)
    agreeCredit(hello.streamCredit)
    agreement.maxBody = Int(hello.maxBody.or(Wire.defaultBody))
    agreement.maxInFlight = Int(hello.maxInFlight.or(Wire.defaultInFlight))
    let interval = min(
      hello.heartbeatInterval.or(Wire.defaultInterval),
      UInt32(clamping: settings.heartbeatInterval / 1_000_000))
    let timeout = min(
      hello.heartbeatTimeout.or(Wire.defaultTimeout),
      UInt32(clamping: settings.heartbeatTimeout / 1_000_000))
    setName(hello.name)
    agreeHeartbeat(interval: interval, timeout: timeout)
    let version = min(hello.version.or(Wire.version), Wire.version)
    guard !settings.identifies else {
      return identify(Greeting(version: version, credential: hello.credential))
    }
    welcome(version: version, expiresIn: 0)
    open()
  }

  /// Sends the welcome.
  mutating func welcome(version: UInt32, expiresIn: UInt32) {
    send(
      .welcome,
      Welcome(
        version: version,
        features: agreement.features.subtracting(carriage.lacking).rawValue,
        maxBody: UInt32(clamping: settings.maxBody),
        maxInFlight: UInt32(clamping: settings.maxInFlight),
        heartbeatInterval: UInt32(clamping: agreement.heartbeatInterval / 1_000_000),
        heartbeatTimeout: UInt32(clamping: agreement.heartbeatTimeout / 1_000_000),
        name: settings.name,
        streamCredit: agreement.features.contains(.streams) ? ownStreamCredit : 0,
        credentialExpires: expiresIn))
  }

  /// Opens the connection, unless the welcome breaks a rule.
  mutating func acceptWelcome(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard settings.role == .client, carriage.awaitsWelcome(isFresh: phase == .fresh) else {
      throw Violation(.unexpectedWelcome, head)
    }
    let welcome: Welcome = try decode(body, of: head)
    let kind = FrameKind.welcome.rawValue
    let features = Features(rawValue: welcome.features)
    guard features.isSubset(of: settings.features), features.withNeeds == features else {
      throw Violation(.featureNotOffered, kind: kind, value: welcome.features)
    }
    guard welcome.version <= Wire.version else {
      throw Violation(.versionNotOffered, kind: kind, value: UInt64(welcome.version))
    }
    agreement.features = features
    agreeCredit(welcome.streamCredit)
    agreement.credentialExpires = welcome.credentialExpires
    agreement.maxBody = Int(welcome.maxBody.or(Wire.defaultBody))
    agreement.maxInFlight = Int(welcome.maxInFlight.or(Wire.defaultInFlight))
    setName(welcome.name)
    // A server that ignored the hello may state longer ones; this side's own limits hold.
    agreeHeartbeat(
      interval: min(
        welcome.heartbeatInterval.or(Wire.defaultInterval),
        UInt32(clamping: settings.heartbeatInterval / 1_000_000)),
      timeout: min(
        welcome.heartbeatTimeout.or(Wire.defaultTimeout),
        UInt32(clamping: settings.heartbeatTimeout / 1_000_000)))
    carriage.welcomed()
    // A short link has been open since its hello.
    if phase == .fresh { open() }
  }

  /// Reads the body of a control message.
  func decode<Message: ControlBody>(
    _ body: BodySlice, of head: FrameHead
  ) throws(Violation) -> Message {
    do throws(BodyError) {
      return try withBody(body, Message.init(decoding:))
    } catch {
      throw Violation(.malformedControl, kind: head.kind.rawValue, serial: head.serial)
    }
  }

  private mutating func agreeCredit(_ credit: UInt32) {
    agreement.streamCredit = min(Int(credit.or(Wire.defaultCredit)), Wire.mostCredit)
  }

  private mutating func setName(_ name: String) {
    agreement.name = Connection.cut(name)
  }

  /// Truncates a text of the peer to the length limit of names.
  static func cut(_ text: String) -> String {
    text.utf8.count <= Wire.nameLimit
      ? text : String(decoding: text.utf8.prefix(Wire.nameLimit), as: UTF8.self)
  }

  private mutating func agreeHeartbeat(interval: UInt32, timeout: UInt32) {
    agreement.heartbeatInterval = Int64(max(interval, Wire.shortestInterval)) * 1_000_000
    agreement.heartbeatTimeout = Int64(max(timeout, Wire.shortestTimeout)) * 1_000_000
    liveness.agree(
      interval: agreement.heartbeatInterval, timeout: agreement.heartbeatTimeout)
    guard carriage.hasHeartbeat else { return }
    writingTimeout = min(
      settings.writingTimeout, agreement.heartbeatInterval + agreement.heartbeatTimeout)
  }

  mutating func open() {
    become(.open)
    outbox.usesFragments = agreement.features.contains(.fragments)
    if !carriage.timesRequest { timers.clear(.handshake) }
    timers[.heartbeat] = heartbeatDue
    report(.life(.established))
  }
}

extension UInt32 {
  /// The number, or `fallback` for 0, which is an absent field on the wire.
  fileprivate func or(_ fallback: UInt32) -> UInt32 { self == 0 ? fallback : self }
}
