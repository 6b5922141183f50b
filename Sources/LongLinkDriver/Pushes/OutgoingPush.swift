// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A push of this side, and the checks whether a link can send it.
struct OutgoingPush {
  let type: MessageType
  let body: any BodyEncodable & Sendable
  let priority: UInt32

  /// Whether the push need not wait for room. A push that cannot be encoded fails only when it is
  /// sent.
  func hasRoom(on link: Link) -> Bool {
    guard link.isOpen else { return false }
    if !link.connection.marks.isAboveLarge { return link.hasRoom }
    return link.connection.marks.admits((try? body.encodedByteCount) ?? 0)
  }

  /// Returns the size of the push's body; throws if the link could not send it even with room.
  @discardableResult
  func validate(on link: Link) throws(LongLinkError) -> Int {
    guard link.isOpen else {
      throw LongLinkError(.notConnected, doing: .push(type), peer: link.peer)
    }
    if let objection = link.connection.framing.objection(toPush: type) {
      throw LongLinkError(
        .unsupported, doing: .push(type), detail: objection, peer: link.peer)
    }
    do throws(BodyError) {
      let size = try body.encodedByteCount
      guard size <= link.connection.agreement.maxBody else {
        throw BodyError(
          .tooLarge,
          detail: "\(size) bytes; the peer accepts at most \(link.connection.agreement.maxBody)")
      }
      try link.connection.framing.validate(body)
      return size
    } catch {
      throw failure(error, on: link)
    }
  }

  private func failure(_ error: BodyError, on link: Link) -> LongLinkError {
    let code: LongLinkError.Code = error.code == .tooLarge ? .tooLarge : .encodingFailed
    return LongLinkError(code, doing: .push(type), detail: "\(error)", peer: link.peer)
  }

  /// Sends the push; it is written by the end of this turn.
  func send(on link: Link) throws(LongLinkError) {
    let size = try validate(on: link)
    do throws(BodyError) {
      try link.push(type, priority: priority, count: size) { (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    } catch {
      throw failure(error, on: link)
    }
    guard link.isLive else {
      // This push exceeded the bound on unread output.
      throw .lost(.unreadOutput, delivery: .notSent, doing: .push(type), peer: link.peer)
    }
  }
}
