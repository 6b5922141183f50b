// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Link {
  /// Whether this push need not wait. A push that cannot be encoded fails when it is sent.
  func hasRoom(for body: any BodyEncodable & Sendable) -> Bool {
    guard isOpen else { return false }
    if takesLarge { return hasRoom }
    return core.marks.admits((try? body.encodedByteCount) ?? 0)
  }

  /// Returns the size of a push's body; throws if it could not be sent even with room for it.
  @discardableResult
  func validatePush(
    _ type: MessageType, _ body: any BodyEncodable & Sendable
  ) throws(LongLinkError) -> Int {
    guard isOpen else {
      throw LongLinkError(.notConnected, doing: .push(type), peer: peer)
    }
    if let objection = core.framing.objection(toPush: type) {
      throw LongLinkError(
        .unsupported, doing: .push(type), detail: objection, peer: peer)
    }
    do throws(BodyError) {
      let size = try body.encodedByteCount
      guard accepts(bodyOf: size) else {
        throw BodyError(
          .tooLarge, detail: "\(size) bytes; the peer accepts at most \(maxBody)")
      }
      try validate(body)
      return size
    } catch {
      throw failure(of: type, error)
    }
  }

  private func failure(of type: MessageType, _ error: BodyError) -> LongLinkError {
    let code: LongLinkError.Code = error.code == .tooLarge ? .tooLarge : .encodingFailed
    return LongLinkError(code, doing: .push(type), detail: "\(error)", peer: peer)
  }

  /// Sends a one-way message, which is written by the end of this turn.
  package func push(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32
  ) throws(LongLinkError) {
    let size = try validatePush(type, body)
    do throws(BodyError) {
      try push(type, priority: priority, count: size) { (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    } catch {
      throw failure(of: type, error)
    }
    guard isLive else {
      // This push exceeded the bound on unread output.
      throw .lost(.unreadOutput, delivery: .notSent, doing: .push(type), peer: peer)
    }
  }

  /// Sends waiting requests and pushes when there is room again. Each kind goes first in turn.
  package func shareRoom(_ requests: Requests?, _ pushes: PushQueue?) {
    pushesGoFirst.toggle()
    if pushesGoFirst { pushes?.pump(over: self) }
    requests?.pump()
    pushes?.pump(over: self)
  }
}
