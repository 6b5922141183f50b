// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

// The frames of streams. Section 15 of wire.md describes them.
extension WireFrame {
  /// Makes a request that opens a stream.
  ///
  /// `credit` is the first credit for items of the responder, in bytes; nil asks for no items.
  /// `sendsItems` announces items of the requester.
  public static func streamRequest(
    _ type: MessageType,
    serial: UInt32,
    _ payload: [UInt8] = [],
    credit: UInt32?,
    sendsItems: Bool = false
  ) -> WireFrame {
    .request(
      type, serial: serial, payload, metadata: WireMetadata(credit: credit, items: sendsItems))
  }

  /// Makes an item of a stream, in one frame. A body of more than 65,536 bytes is too large for a
  /// frame: split it with ``fragments(of:)``.
  public static func item(_ serial: UInt32, _ payload: [UInt8] = []) -> WireFrame {
    WireFrame(.item, serial: serial, body: payload)
  }

  /// Makes the frame with which a requester ends its items in a stream.
  public static func end(_ serial: UInt32) -> WireFrame {
    WireFrame(.end, serial: serial)
  }

  /// Makes a frame that grants further credit in a stream. `bytes` is valid from 1 to
  /// 2,147,483,647; nothing checks it.
  public static func credit(_ serial: UInt32, _ bytes: UInt32) -> WireFrame {
    var body: [UInt8] = []
    body.appendWord(bytes)
    return WireFrame(.credit, serial: serial, body: body)
  }

  /// The number of bytes that a credit frame grants; nil for other frames, and if the body is not 4
  /// bytes long.
  public var grantedCredit: UInt32? {
    kind == .credit && body.count == 4 ? body.word(at: 0) : nil
  }

  /// The credit that a frame of an item costs, in bytes: 16 for its header plus the length of its
  /// body. 0 for other frames.
  public var creditCost: Int {
    kind == .item ? WireFrame.headerLength + body.count : 0
  }
}
