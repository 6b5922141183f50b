// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

// The frames for requests, responses, pushes and the heartbeat.
extension WireFrame {
  /// Makes a request. The serials of a client's requests are 50 to 0x7FFF_FFFF; those of a server
  /// are 0x8000_0032 to 0xFFFF_FFFF. Nothing checks them.
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

  /// Makes a response to the request with a serial; `isRefused` states that no handler was called.
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

  /// Makes a frame that cancels the request with a serial.
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

  /// Makes a ping. Its body comes back in the pong; more than 64 bytes are a violation.
  public static func ping(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.ping, body: body)
  }

  /// Makes a pong with the body of its ping.
  public static func pong(_ body: [UInt8] = []) -> WireFrame {
    WireFrame(.pong, body: body)
  }

  /// Returns the frame split into fragments with at most `size` bytes of body each: at least one
  /// frame, even without a body. A `size` below 1 traps.
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
  /// The code of a response, or of the answer to a renewal; meaningless for other kinds.
  public var code: ResponseCode { ResponseCode(wire: tag) }

  /// Whether a response has the refused bit, so that no handler was called.
  public var isRefused: Bool { tag & Wire.refusedBit != 0 }

  /// The message type of a request or push; meaningless for other kinds.
  public var type: MessageType { MessageType(tag: tag) }
}
