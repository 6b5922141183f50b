internal import LongLinkCore

/// Cuts a stream of bytes into frames, whatever they hold. It judges nothing.
struct FrameReader {
  /// A frame, and whether its checksum was right.
  struct Reading {
    let frame: WireFrame
    let isIntact: Bool
  }

  private var pending: [UInt8] = []
  private var start = 0

  /// Bytes of a frame that is not yet whole.
  var unfinished: Int { pending.count - start }

  mutating func append(_ bytes: [UInt8]) {
    if start > 0 {
      pending.removeFirst(start)
      start = 0
    }
    pending += bytes
  }

  /// Takes the next whole frame.
  mutating func next() -> Reading? {
    guard unfinished >= WireFrame.headerLength else { return nil }
    let word = pending.word(at: start)
    let length = Int(pending.word(at: start + 8))
    let bodyStart = start + WireFrame.headerLength
    guard pending.count - bodyStart >= length else { return nil }
    let body = pending[bodyStart..<bodyStart + length]
    let header = Array(pending[start..<start + 12])
    let frame = WireFrame(
      WireFrame.Kind(rawValue: UInt8(truncatingIfNeeded: word >> 24)),
      tag: word & Wire.tagMask,
      serial: pending.word(at: start + 4),
      moreFollows: word & (1 << 30) != 0,
      hasMetadata: word & (1 << 31) != 0,
      body: Array(body)
    )
    let sum = WireFrame.checksum(header: header, body: body)
    let reading = Reading(frame: frame, isIntact: sum == pending.word(at: start + 12))
    start = bodyStart + length
    return reading
  }
}
