package import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// Whether a request or push may be handed over, if it is not too large for `takesLarge`.
  package var hasRoom: Bool { session.isOpen && !session.isAboveMark }

  /// Whether one that goes in fragments may.
  package var takesLarge: Bool { !session.isAboveLargeMark }

  /// Whether this push need not wait. One without an encoding fails where it is sent.
  func hasRoom(for body: any BodyEncodable & Sendable) -> Bool {
    guard session.isOpen else { return false }
    if takesLarge { return hasRoom }
    return session.hasRoom(for: (try? body.encodedByteCount) ?? 0)
  }

  /// Throws where a push could not be sent even if there were room for it.
  func judgePush(
    _ type: MessageType, _ body: any BodyEncodable & Sendable
  ) throws(LongLinkError) {
    guard session.isOpen else {
      throw LongLinkError(.notConnected, doing: .push(type), peer: peer)
    }
    try judge(type)
    do throws(BodyError) {
      _ = try size(of: body)
    } catch {
      throw failure(of: type, error)
    }
  }

  private func size(of body: any BodyEncodable & Sendable) throws(BodyError) -> Int {
    let size = try body.encodedByteCount
    guard session.accepts(bodyOf: size) else {
      throw BodyError(
        .tooLarge, detail: "\(size) bytes, of which the peer accepts \(session.agreement.maxBody)")
    }
    if session.speaksDialect { try session.judge(body) }
    return size
  }

  /// Throws where the dialect has no such push.
  private func judge(_ type: MessageType) throws(LongLinkError) {
    if let objection = session.objection(toPush: type) {
      throw LongLinkError(
        .unsupported, doing: .push(type), detail: objection, peer: peer)
    }
  }

  private func failure(of type: MessageType, _ error: BodyError) -> LongLinkError {
    let code: LongLinkError.Code = error.code == .tooLarge ? .tooLarge : .encodingFailed
    return LongLinkError(code, doing: .push(type), detail: "\(error)", peer: peer)
  }

  /// Sends a one-way message; it leaves by the end of this turn.
  package func push(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32
  ) throws(LongLinkError) {
    guard session.isOpen else {
      throw LongLinkError(.notConnected, doing: .push(type), peer: peer)
    }
    try judge(type)
    do throws(BodyError) {
      let size = try size(of: body)
      try session.push(type, priority: priority, count: size, at: loop.now) {
        (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    } catch {
      throw failure(of: type, error)
    }
    drain()
    guard session.isLive else {
      // It was the one message too many for a peer that does not read.
      throw .lost(.unreadOutput, delivery: .notSent, doing: .push(type), peer: peer)
    }
    writeAtEndOfTurn()
    arm()
  }
}
