// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Notes that the stream is connected. A client sends its hello; a dialect has no handshake and
  /// is open at once.
  package mutating func connected(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard phase == .fresh else { return }
    guard let dialect = framing.dialect else {
      guard settings.role == .client else { return }
      send(.hello, settings.hello)
      if let features = carriage.featuresWithHello(of: settings.usable) {
        agreement.features = features
        open()
      }
      return
    }
    dialect.lastPing = self.now
    liveness.begin(at: self.now)
    if settings.identifies { identify(Greeting()) } else { open() }
  }

  /// Processes a hello, and sends the welcome unless the client has to be identified first.
  mutating func acceptHello(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard settings.role == .server, !heardHello else { throw Violation(.unexpectedHello, head) }
    guard phase == .fresh else { throw Violation(.helloNotFirst, head) }
    let hello: Hello = try inbox.decode(body, of: head)
    heardHello = true
    let features = carriage.agree(on: Features(rawValue: hello.features), of: settings.usable)
    let version = agreement.accept(hello, features: features, settings)
    adoptHeartbeat()
    let greeting = Greeting(
      version: version, credential: settings.identifies ? hello.credential : nil,
      clientID: hello.clientID)
    guard !settings.identifies, !asksForOnce else { return identify(greeting) }
    self.greeting = greeting
    welcome(version: version, expiresIn: 0)
    open()
  }

  /// Sends the welcome. `once` are the terms for a client that `asksForOnce`; nil if its requests
  /// cannot run once.
  mutating func welcome(version: UInt32, expiresIn: UInt32, once: OnceTerms? = nil) {
    agreement.once = asksForOnce ? once : nil
    if asksForOnce, once == nil, !carriage.lacksOnce() { agreement.features.remove(.once) }
    let stated = agreement.features.subtracting(carriage.lacking)
    send(
      .welcome,
      agreement.welcome(version: version, features: stated, expiresIn: expiresIn, settings))
  }

  /// Opens the connection, unless the welcome breaks a rule.
  mutating func acceptWelcome(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard settings.role == .client, carriage.awaitsWelcome(isFresh: phase == .fresh) else {
      throw Violation(.unexpectedWelcome, head)
    }
    try agreement.accept(try inbox.decode(body, of: head), settings, at: now)
    adoptHeartbeat()
    carriage.welcomed()
    // A short link has been open since its hello.
    if phase == .fresh { open() }
  }

  private mutating func adoptHeartbeat() {
    let (interval, timeout) = (agreement.heartbeatInterval, agreement.heartbeatTimeout)
    liveness.agree(interval: interval, timeout: timeout)
    if carriage.hasHeartbeat { writingTimeout = min(settings.writingTimeout, interval + timeout) }
  }

  mutating func open() {
    become(.open)
    outbox.usesFragments = agreement.features.contains(.fragments)
    if !carriage.timesRequest { timers.clear(.handshake) }
    timers[.heartbeat] = heartbeatDue
    report(.life(.established))
  }
}
