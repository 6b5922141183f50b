// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension DialectCodec {
  /// The largest size of a frame with `count` bytes of body.
  package func room(forBody count: Int) -> Int {
    // A cancel can have a body that its head does not count.
    let body = max(count, outgoing.serial.width)
    if case .escaped = outgoing.inside { return outgoing.lead + 2 * body + outgoing.tail }
    return outgoing.lead + body + outgoing.tail
  }

  /// Makes room for a header, and returns where the frame begins. The caller then appends the body.
  package func begin(_ span: inout OutputRawSpan) -> Int {
    let start = span.byteCount
    for _ in 0..<outgoing.headerLength { span.append(0) }
    for byte in outgoing.delimiter { span.append(byte) }
    return start
  }

  /// Completes the frame that begins at `start`, whose body is at the end of the span. If the body
  /// contains a forbidden delimiter, removes the frame and returns false: see
  /// `FrameLayout.Delimiter.Inside.refused`.
  ///
  /// The span must have the room that `room(forBody:)` returned, and the body must be within the
  /// dialect's limit. The serial of a ping or pong is that of the wire.
  package func finish(
    _ head: FrameHead, from start: Int, in span: inout OutputRawSpan
  ) -> Bool {
    if head.kind == .cancel, dialect.cancel?.target == .body { appendSerial(head.serial, &span) }
    let bodyEnd = span.byteCount
    precondition(
      bodyEnd - start - outgoing.lead <= dialect.maximumBody, "the body is over the limit")
    for _ in 0..<outgoing.trailerLength { span.append(0) }
    let values = values(of: head)
    let escaped = unsafe span.withUnsafeMutableBytes { buffer, count -> Int? in
      // The span contains the header's room, the body and the trailer's room, as appended above.
      let frame = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
      let body = outgoing.lead..<bodyEnd - start
      guard unsafe isAllowed(UnsafeRawBufferPointer(rebasing: frame[body])) else {
        count = start
        return nil
      }
      unsafe write(values, body, frame)
      let added = unsafe escape(body, frame)
      count += added
      return added
    }
    guard escaped != nil else { return false }
    for byte in outgoing.delimiter { span.append(byte) }
    return true
  }

  /// Appends a whole frame without a body.
  package func append(_ head: FrameHead, to span: inout OutputRawSpan) {
    let start = begin(&span)
    let isSent = finish(head, from: start, in: &span)
    precondition(isSent, "an empty body contains no delimiter")
  }

  private struct Values {
    var type: UInt64
    var serial: UInt64
    var code: UInt64
  }

  private func values(of head: FrameHead) -> Values {
    var values = Values(
      type: 0, serial: UInt64(head.serial), code: UInt64(dialect.codes?.success[0] ?? 0))
    switch head.kind {
    case .request:
      values.type = UInt64(head.tag)
    case .push:
      values.type = UInt64(head.tag)
      values.serial = UInt64(dialect.pushes.serial)
    case .response:
      values.type = responseType(to: head.about) ?? 0
      values.code =
        head.flags.contains(.ownCode)
        ? UInt64(head.tag) : UInt64(wireCode(ResponseCode(wire: head.tag)))
    case .cancel:
      values.type = UInt64(dialect.cancel?.type ?? 0)
      switch dialect.cancel?.target {
      case .serial, nil: break
      case .type: values.serial = UInt64(head.about)
      case .body: values.serial = 0
      }
    case .ping:
      values.type = UInt64(dialect.heartbeat[role]?.type ?? 0)
    case .pong:
      values.type = UInt64(dialect.heartbeat[role.peer]?.answer ?? 0)
    case .item, .end, .credit, .renewal, .hello, .welcome, .goaway, .ignorable:
      preconditionFailure("a dialect has no frames of this kind")
    }
    return values
  }

  /// The number on the wire for a code.
  package func wireCode(_ code: ResponseCode) -> UInt32 {
    guard let codes = dialect.codes, let width = outgoing.code?.width else { return 0 }
    return codes.wire(of: code, largest: width >= 4 ? .max : 1 << UInt32(8 * width) - 1)
  }

  private func appendSerial(_ serial: UInt32, _ span: inout OutputRawSpan) {
    let slot = outgoing.serial
    for index in 0..<slot.width {
      let shift = UInt64(8 * (slot.isLittle ? index : slot.width - 1 - index))
      span.append(UInt8(truncatingIfNeeded: UInt64(serial) >> shift))
    }
  }

  private func write(
    _ values: Values, _ body: Range<Int>, _ frame: UnsafeMutableRawBufferPointer
  ) {
    // `frame` covers the header, the body and the trailer, which contain every slot.
    let start = frame.baseAddress!
    let trailer = unsafe start + body.upperBound
    func put(_ value: UInt64, _ slot: FramePlan.Slot) {
      unsafe slot.write(value, slot.isTrailer ? trailer : start)
    }
    if let slot = outgoing.type { put(values.type, slot) }
    if let slot = outgoing.repeatedType { put(values.type, slot) }
    put(values.serial, outgoing.serial)
    if let slot = outgoing.code { put(values.code, slot) }
    if let slot = outgoing.length { put(UInt64(body.count + outgoing.lengthBias), slot) }
    for literal in outgoing.literals { put(literal.value, literal.slot) }
    for filler in outgoing.fillers where filler.value != 0 {
      let place = unsafe (filler.slot.isTrailer ? trailer : start) + filler.slot.offset
      for index in 0..<filler.slot.width {
        unsafe place.storeBytes(of: filler.value, toByteOffset: index, as: UInt8.self)
      }
    }
    if let slot = outgoing.token {
      for (index, byte) in token.enumerated() {
        unsafe start.storeBytes(of: byte, toByteOffset: slot.offset + index, as: UInt8.self)
      }
    }
    if let sum = outgoing.sum {
      let value = unsafe sum.value(UnsafeRawBufferPointer(frame), body)
      put(UInt64(value), sum.slot)
    }
  }
}

extension FramePlan.Sum {
  /// The checksum of the frame at the start of `bytes`, with its body at `body`.
  func value(_ bytes: UnsafeRawBufferPointer, _ body: Range<Int>) -> UInt32 {
    var sum: UInt32 = algorithm == .adler32 ? 1 : 0
    for range in header { unsafe add(bytes, range, &sum) }
    if self.body { unsafe add(bytes, body, &sum) }
    for range in trailer {
      let place = body.upperBound + range.lowerBound..<body.upperBound + range.upperBound
      unsafe add(bytes, place, &sum)
    }
    return sum
  }

  private func add(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ sum: inout UInt32
  ) {
    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[range])
    switch algorithm {
    case .adler32: sum = unsafe Adler32.checksum(of: part, continuing: sum)
    case .crc32: sum = unsafe CRC32.checksum(of: part, continuing: sum)
    }
  }
}
