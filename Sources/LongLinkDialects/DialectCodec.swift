// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The encoder and decoder of a dialect for one side of a connection.
package final class DialectCodec: DialectFraming {
  package let facts: DialectFacts
  package let dialect: FrameDialect
  package let role: Role
  /// The token that this side writes; empty for zeros.
  package let token: [UInt8]
  /// The largest body that is accepted, in bytes: at most the dialect's limit.
  package let maximumIncoming: Int
  let incoming: FramePlan
  let outgoing: FramePlan
  private let incomingRules: DialectRules
  private let outgoingRules: DialectRules

  /// Makes a codec. Throws if the token is not as wide as its field; a server can omit it.
  package init(
    _ dialect: FrameDialect, role: Role, token: [UInt8] = [], maximumIncoming: Int = .max
  ) throws(DialectTokenError) {
    self.dialect = dialect
    self.role = role
    self.token = token
    self.maximumIncoming = min(maximumIncoming, dialect.maximumBody)
    incoming = FramePlan(dialect.layout, from: role.peer)
    outgoing = FramePlan(dialect.layout, from: role)
    incomingRules = DialectRules(dialect, from: role.peer)
    outgoingRules = DialectRules(dialect, from: role)
    facts = dialect.facts(role)
    let width = outgoing.token?.width ?? 0
    guard token.count == width || token.isEmpty && role == .server else {
      throw DialectTokenError(bytes: token.count, insteadOf: width)
    }
  }

  /// The codec of the other side, which reads what this side has written.
  package var mirrored: DialectCodec {
    DialectCodec(mirroring: self)
  }

  private init(mirroring codec: DialectCodec) {
    dialect = codec.dialect
    role = codec.role.peer
    token = []
    maximumIncoming = dialect.maximumBody
    incoming = codec.outgoing
    outgoing = codec.incoming
    incomingRules = codec.outgoingRules
    outgoingRules = codec.incomingRules
    facts = dialect.facts(role)
  }

  /// The position of the other side's token in its frames; nil if it has none.
  package var peer: Range<Int>? {
    incoming.token.map { $0.offset..<$0.offset + $0.width }
  }

  /// The position of the last checksum byte in a frame that this side has written; nil if frames
  /// have no checksum.
  package func checksumPlace(inFrameOf length: Int) -> Int? {
    guard let slot = outgoing.sum?.slot else { return nil }
    let start = slot.isTrailer ? length - outgoing.trailerLength : 0
    return start + slot.offset + (slot.isLittle ? 0 : slot.width - 1)
  }

  /// The serial of the ping with this number, counted from 1; the dialect's range is used in turn.
  /// Nil if this side sends no pings.
  package func pingSerial(_ number: UInt64) -> UInt32? {
    guard let serials = dialect.heartbeat[role]?.serials else { return nil }
    let count = UInt64(serials.upperBound - serials.lowerBound) + 1
    return serials.lowerBound + UInt32((number &- 1) % count)
  }

  func kind(incoming type: UInt64?, _ serial: UInt64) throws(Violation) -> FrameKind {
    try incomingRules.kind(type: type, serial: serial)
  }
}

// MARK: - What can be sent

extension DialectCodec {
  package func makeDecoder() -> any DialectDecoding { DialectDecoder(self) }

  package func isSuccess(_ code: UInt32) -> Bool { dialect.codes?.success.contains(code) ?? false }

  package func summary(of code: UInt32) -> String {
    dialect.codes?.error(code)?.summary ?? "\(code)"
  }

  /// Whether this side can send a request of this type, and its response is recognisable as one.
  package func canSendRequest(_ type: MessageType, serial: UInt32) -> Bool {
    let wire = UInt64(type.rawValue)
    guard fits(wire, outgoing.type),
      (try? outgoingRules.kind(type: wire, serial: UInt64(serial))) == .request,
      let answer = responseType(to: type.rawValue)
    else { return false }
    guard incoming.type != nil else { return true }
    return fits(answer, incoming.type)
      && (try? incomingRules.kind(type: answer, serial: UInt64(serial))) == .response
  }

  /// Whether the receiver would recognise a push of this type as a push.
  package func canSendPush(_ type: MessageType) -> Bool {
    let wire = UInt64(type.rawValue)
    let serial = UInt64(dialect.pushes.serial)
    return fits(wire, outgoing.type)
      && (try? outgoingRules.kind(type: wire, serial: serial)) == .push
  }

  /// Whether a response can express this code: without a code field, it can only mean success.
  package func canSendResponse(_ code: ResponseCode) -> Bool {
    outgoing.code != nil || code == .ok
  }

  /// Whether one of the dialect's own codes fits into a response.
  package func canSend(code: UInt32) -> Bool { fits(UInt64(code), outgoing.code) }

  /// Whether this side can cancel a request of this type.
  package func canSendCancel(of type: MessageType) -> Bool {
    guard let cancel = dialect.cancel, dialect.maySendRequests(role) else { return false }
    return cancel.target != .type || fits(UInt64(type.rawValue), outgoing.serial)
  }

  private func fits(_ value: UInt64, _ slot: FramePlan.Slot?) -> Bool {
    guard let slot else { return false }
    return slot.width == 8 || value >> UInt64(8 * slot.width) == 0
  }

  /// The type of a response to a request of this type.
  package func responseType(to type: UInt32) -> UInt64? {
    switch dialect.responseType {
    case .echo: UInt64(type)
    case .offset(let offset): UInt64(type) + UInt64(offset)
    case .fixed(let fixed): UInt64(fixed)
    case .absent: 0
    }
  }

  /// The type of the request that a response belongs to, if the response's type determines it.
  package func requestType(of response: DialectFrame) -> MessageType? {
    switch dialect.responseType {
    case .echo: MessageType(rawValue: response.type)
    case .offset(let offset): MessageType(rawValue: response.type &- offset)
    case .fixed, .absent: nil
    }
  }
}
