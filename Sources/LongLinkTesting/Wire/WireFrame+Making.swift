// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

// The frames for requests, responses, pushes and the heartbeat.
extension WireFrame {
  /// Makes a request. A client's serials are 50 to 0x7FFF_FFFF; a server's also have the top bit.
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

  /// Makes a response; `isRefused` states that no handler was called.
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

  /// Makes the cancel of a request.
  public static func cancel(_ serial: UInt32) -> WireFrame {
    WireFrame(.cancel, serial: serial)
  }

  /// Makes a push, which gets neither a response nor an acknowledgement.
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

  /// Makes a ping, whose body of at most 64 bytes comes back.
  public static func ping(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.ping, body: body)
  }

  /// Makes a pong with the body of its ping.
  public static func pong(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.pong, body: body)
  }

  /// Splits the frame's body into fragments of at most `size` bytes; at least one frame.
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
  public var code: ResponseCode { ResponseCode(wire: tag) }

  /// Whether a response has the refused bit, so that no handler was called.
  public var isRefused: Bool { tag & Wire.refusedBit != 0 }

  /// The type of a request or push.
  public var type: MessageType { MessageType(tag: tag) }
}
