// SPDX-License-Identifier: Apache-2.0

// A server that identifies its clients does so before anything that they send is acted on. In the
// meantime nothing is read either, so that they can make it hold no more than one read.

extension Connection {
  /// Asks the owner whether it accepts the client.
  mutating func identify(_ greeting: Greeting) {
    self.greeting = greeting
    become(.identifying)
    // The owner bounds the time from here on.
    timers.clear(.handshake)
    stopFrame()
    report(.identify)
  }

  /// Accepts the client, or the renewal of its credential, which expires after `expiresIn`
  /// milliseconds; 0 for never. `once` says where the client's keys are kept; nil if they are not.
  package mutating func admit(
    expiresIn: UInt32, once: OnceTerms? = nil, at now: LinkInstant
  ) {
    self.now = max(self.now, now)
    guard phase == .identifying else {
      return decide(.ok, Renewed(credentialExpires: expiresIn))
    }
    greeting?.credential = nil
    if let version = greeting?.version {
      welcome(version: version, expiresIn: expiresIn, once: once)
    }
    open()
    if carriage.timesRequest { timers[.handshake] = self.now + settings.handshakeTimeout }
  }

  /// Refuses the client and closes, or refuses the renewal of its credential and continues with the
  /// former one. The client is told the reason.
  package mutating func turnAway(_ code: ResponseCode, _ reason: String, at now: LinkInstant) {
    self.now = max(self.now, now)
    guard phase == .identifying else { return decide(code, Renewed(reason: reason.cutToName)) }
    greeting = nil
    beginClosing(.notAccepted(code), saying: notice(code, reason.cutToName))
  }
}

// MARK: - Renewal

extension Connection {
  /// Whether the client's credential can be renewed here.
  package var canRenew: Bool { agreement.features.contains(.renewal) }

  /// Whether the server has not answered the client's renewal.
  package var isRenewing: Bool { isOpen && greeting?.isRenewal == true }

  /// Sends this client's next credential, which is not empty; `.renewed` follows. Once at a time,
  /// on a connection that `canRenew`.
  package mutating func renew(with credential: [UInt8], at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isOpen, canRenew, !isRenewing else { return }
    greeting = Greeting(credential: credential, isRenewal: true)
    outbox.encodeRenewal(credential)
  }

  /// Processes a client's renewal, or a server's answer to it.
  mutating func acceptRenewal(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard settings.role == .server else { return try acceptRenewed(head, body) }
    guard !isRenewing else { throw Violation(.kindNotAgreed, head) }
    guard !goodbyes.isSaid else {
      return send(.renewal, tag: ResponseCode.draining.rawValue, Renewed(reason: "too late"))
    }
    let rest = timers[.handshake]
    guard rest == .distantFuture || rest <= now else {
      return send(.renewal, tag: ResponseCode.overloaded.rawValue, Renewed(reason: "too soon"))
    }
    timers[.handshake] = now + Wire.renewalRest
    greeting = Greeting(credential: inbox.takeBytes(of: body), isRenewal: true)
    report(.identify)
  }

  private mutating func acceptRenewed(_ head: FrameHead, _ body: BodySlice) throws(Violation) {
    guard isRenewing, let credential = greeting?.credential else {
      throw Violation(.kindNotAgreed, head)
    }
    let renewed: Renewed = try inbox.decode(body, of: head)
    greeting = nil
    let code = ResponseCode(wire: head.tag)
    if code == .ok { agreement.credentialExpires = renewed.credentialExpires }
    report(
      .life(
        .renewed(
          RenewalAnswer(code: code, reason: renewed.reason.cutToName, credential: credential))))
  }

  /// Answers the client's renewal, unless the connection ends.
  private mutating func decide(_ code: ResponseCode, _ renewed: Renewed) {
    guard isRenewing else { return }
    greeting = nil
    send(.renewal, tag: code.rawValue, renewed)
  }
}
