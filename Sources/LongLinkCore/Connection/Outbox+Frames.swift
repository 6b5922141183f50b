// SPDX-License-Identifier: Apache-2.0

// Frames that carry no message of the application: what is in them.

extension Outbox {
  /// Encodes a message about the connection itself.
  mutating func encode(_ kind: FrameKind, tag: UInt32, _ message: some ControlBody) {
    let body: [UInt8]
    do throws(BodyError) {
      body = try message.encodedBytes()
    } catch {
      // Names are checked when they are configured, and reasons are cut: no NUL can occur here.
      preconditionFailure("a control message has no encoding: \(error)")
    }
    let serial =
      switch kind {
      case .goaway: Wire.goawaySerial
      case .renewal: 0 as UInt32
      default: Wire.handshakeSerial
      }
    encode(FrameHead(kind, tag: tag, serial: serial, length: body.count), copying: body)
  }

  /// Encodes a client's next credential.
  mutating func encodeRenewal(_ credential: [UInt8]) {
    encode(FrameHead(.renewal, length: credential.count), copying: credential)
  }

  private mutating func encode(_ head: FrameHead, copying body: [UInt8]) {
    encode(head) { span in
      unsafe body.withUnsafeBytes { unsafe span.appendBytes($0) }
    }
  }

  /// Encodes a ping with a number.
  mutating func encodePing(_ id: UInt64) {
    encode(FrameHead(.ping, length: 8)) { span in
      // Any integer can be appended as its bytes.
      unsafe span.append(id.bigEndian, as: UInt64.self)
    }
  }

  /// Encodes the answer to a ping, which repeats its body.
  mutating func encodePong(_ body: UnsafeRawBufferPointer) {
    encode(FrameHead(.pong, length: body.count)) { span in
      unsafe span.appendBytes(body)
    }
  }

  /// Encodes a grant of credit for the items of a stream.
  mutating func encodeCredit(_ credit: Int, for serial: UInt32) {
    encode(FrameHead(.credit, serial: serial, length: 4)) { span in
      for shift in [24, 16, 8, 0] { span.append(UInt8(truncatingIfNeeded: credit >> shift)) }
    }
  }

  /// Encodes a response that says that no handler was called, with at most `most` bytes of a text
  /// in ASCII.
  mutating func encodeRefusal(
    of serial: UInt32, _ code: ResponseCode, _ text: String, most: Int
  ) {
    let body = text.utf8.prefix(most)
    let tag = code.rawValue | Wire.refusedBit
    encode(FrameHead(.response, tag: tag, serial: serial, length: body.count)) { span in
      for byte in body { span.append(byte) }
    }
  }
}
