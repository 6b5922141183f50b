// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

// The frames that peers send each other, each with what it needs.
extension WireFrame {
  /// A request. A client's serials are 50 to 0x7FFF_FFFF, a server's have the highest bit set too.
  public static func request(
    _ type: MessageType,
    serial: UInt32,
    _ payload: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> WireFrame {
    WireFrame(
      .request,
      tag: type.rawValue,
      serial: serial,
      metadata: metadata,
      payload: payload
    )
  }

  /// The answer to a request; `isRefused` says that no handler was called.
  public static func response(
    to serial: UInt32,
    code: ResponseCode = .ok,
    isRefused: Bool = false,
    _ payload: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> WireFrame {
    let tag = code.rawValue | (isRefused ? Wire.refusedBit : 0)
    return WireFrame(.response, tag: tag, serial: serial, metadata: metadata, payload: payload)
  }

  /// The withdrawal of a request.
  public static func cancel(_ serial: UInt32) -> WireFrame {
    WireFrame(.cancel, serial: serial)
  }

  /// A message that is neither answered nor acknowledged.
  public static func push(
    _ type: MessageType,
    _ payload: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> WireFrame {
    WireFrame(
      .push,
      tag: type.rawValue,
      serial: Wire.plainPushSerial,
      metadata: metadata,
      payload: payload
    )
  }

  /// A ping, whose body of at most 64 bytes comes back.
  public static func ping(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.ping, body: body)
  }

  /// The answer to a ping with the same body.
  public static func pong(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.pong, body: body)
  }

  /// Cuts the frame's body into fragments of at most `size` bytes; at least one frame comes of it.
  public func fragments(of size: Int) -> [WireFrame] {
    precondition(size > 0, "a fragment has at least one byte")
    var frames: [WireFrame] = []
    var rest = body[...]
    repeat {
      var frame = self
      frame.body = Array(rest.prefix(size))
      rest = rest.dropFirst(size)
      frame.moreFollows = moreFollows || !rest.isEmpty
      frame.hasMetadata = hasMetadata && frames.isEmpty
      frames.append(frame)
    } while !rest.isEmpty
    return frames
  }
}

extension WireFrame {
  /// The code of a response.
  public var code: ResponseCode { ResponseCode(rawValue: tag & Wire.codeMask) }

  /// Whether a response says that no handler was called.
  public var isRefused: Bool { tag & Wire.refusedBit != 0 }

  /// The type of a request or push.
  public var type: MessageType { MessageType(tag: tag) }
}
