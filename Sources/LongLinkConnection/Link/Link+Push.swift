package import LongLinkCore
internal import LongLinkTransport

extension Link {
  /// Sends a one-way message; it leaves at the end of this turn.
  package func push(
    _ type: MessageType, _ body: any BodyEncodable & Sendable
  ) throws(LongLinkError) {
    let operation = "push type=\(type)"
    guard session.isOpen else {
      throw LongLinkError(.notConnected, doing: operation, peer: peer)
    }
    do throws(BodyError) {
      let size = try body.encodedByteCount
      guard session.accepts(bodyOf: size) else {
        throw BodyError(
          .tooLarge, detail: "\(size) bytes, of which the peer accepts \(session.agreement.maxBody)"
        )
      }
      try session.push(type, count: size, at: loop.now) { (span) throws(BodyError) in
        try body.encode(into: &span)
      }
    } catch {
      let code: LongLinkError.Code = error.code == .tooLarge ? .tooLarge : .encodingFailed
      throw LongLinkError(code, doing: operation, detail: "\(error)", peer: peer)
    }
    drain()
    writeAtEndOfTurn()
    arm()
  }
}
