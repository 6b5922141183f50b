// SPDX-License-Identifier: Apache-2.0

/// What version 1 allows in the header of one frame kind, before any negotiation.
///
/// The connection, the dissector and the decoder all use these rules.
package struct FrameRule: Equatable, Sendable {
  /// The side whose serials a frame uses.
  package enum Serials: Equatable, Sendable {
    /// The sender's serials: the frame refers to a request of its sender.
    case sender
    /// The receiver's serials: the frame answers a request of its receiver.
    case receiver
    /// Either side's serials: the frame belongs to an exchange, whichever side began it.
    case exchange
    /// A single reserved serial.
    case reserved(UInt32)
    case any
  }

  /// What a frame of this kind contains.
  package enum Content: Equatable, Sendable {
    /// A message or a fragment of one, with a tag and flags.
    case message
    /// An item or a fragment of one, with the flag `more` at most, and without a tag.
    case item
    /// At most this number of bytes, without a tag or flags.
    case control(Int)
    /// Exactly this number of bytes, without a tag or flags.
    case number(Int)
    /// Anything up to the largest body; it is read and ignored.
    case ignored
    /// A credential of the client, or the server's answer, whose tag is a code.
    case renewal
  }

  package let serials: Serials
  package let content: Content

  private init(_ serials: Serials, _ content: Content) {
    self.serials = serials
    self.content = content
  }

  /// The rule for a kind.
  @inline(__always)
  package init(_ kind: FrameKind) {
    self =
      switch kind {
      case .request: FrameRule(.sender, .message)
      case .response: FrameRule(.receiver, .message)
      case .push: FrameRule(.reserved(Wire.plainPushSerial), .message)
      case .cancel: FrameRule(.sender, .number(0))
      case .ping, .pong: FrameRule(.reserved(0), .control(Wire.pingLimit))
      case .hello, .welcome: FrameRule(.reserved(Wire.handshakeSerial), .control(Wire.controlLimit))
      case .goaway: FrameRule(.reserved(Wire.goawaySerial), .control(Wire.controlLimit))
      case .item: FrameRule(.exchange, .item)
      case .end: FrameRule(.sender, .number(0))
      case .credit: FrameRule(.exchange, .number(4))
      case .renewal: FrameRule(.reserved(0), .renewal)
      case .ignorable: FrameRule(.any, .ignored)
      }
  }

  /// The tag that no response can have: refused and successful at once.
  package static let forbiddenResponseTag = Wire.refusedBit | ResponseCode.ok.rawValue

  /// The ranges of serials that a frame from this side can have; empty for any.
  package func serials(from sender: Role) -> [ClosedRange<UInt32>] {
    switch serials {
    case .sender: [sender.serials]
    case .receiver: [sender.peer.serials]
    case .exchange: [Role.client.serials, Role.server.serials]
    case .reserved(let serial): [serial...serial]
    case .any: []
    }
  }

  /// The features without which a frame of this kind is not allowed.
  package static func features(_ kind: FrameKind) -> Features {
    switch kind {
    case .item, .end, .credit: .streams
    case .renewal: .renewal
    case .request, .response, .cancel, .push, .ping, .pong, .hello, .welcome, .goaway, .ignorable:
      []
    }
  }

  /// Whether a frame from this side can have this serial.
  @inline(__always)
  func admits(_ serial: UInt32, from sender: Role) -> Bool {
    switch serials {
    case .sender: sender.owns(serial)
    case .receiver: sender.peer.owns(serial)
    case .exchange: serial & ~Wire.serverBit >= Wire.firstSerial
    case .reserved(let reserved): serial == reserved
    case .any: true
    }
  }
}
