// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// Splits a stream of bytes into frames, without checking rules.
package struct FrameReader {
  /// A frame, and whether its checksum was correct.
  package struct Reading {
    package let frame: WireFrame
    package let isIntact: Bool
  }

  /// A step in reading a stream of bytes.
  enum Step {
    case frame(Reading)
    /// In a dialect, a damaged packet, after which reading continues.
    case damaged(Violation)
    /// In a dialect, a violation, after which nothing more can be read.
    case violation(Violation)
  }

  private var pending: [UInt8] = []
  private var start = 0
  private var decoder: (any DialectDecoding)?
  private var isOver = false

  package init(_ dialect: (any DialectFraming)? = nil) {
    decoder = dialect?.makeDecoder()
  }

  /// The number of received bytes that are not part of a returned frame.
  var unfinished: Int { pending.count - start }

  package mutating func append(_ bytes: [UInt8]) {
    if start > 0 {
      pending.removeFirst(start)
      start = 0
    }
    pending += bytes
  }

  /// Takes the next complete frame, or a violation; nil if more bytes are needed.
  mutating func next() -> Step? {
    decoder == nil ? nextNative().map { .frame($0) } : nextInDialect()
  }

  private mutating func nextInDialect() -> Step? {
    while !isOver {
      let rest = start...
      let step = unsafe pending.withUnsafeMutableBytes { bytes in
        // Starts after the bytes that were already taken.
        unsafe decoder?.next(in: UnsafeMutableRawBufferPointer(rebasing: bytes[rest]))
      }
      switch step {
      case .needMore, nil:
        return nil
      case .skipped(let count):
        start += count
      case .damaged(let count, let violation):
        start += count
        return .damaged(violation)
      case .violation(let violation):
        isOver = true
        return .violation(violation)
      case .frame(let frame):
        let body = start + frame.body.lowerBound..<start + frame.body.upperBound
        let read = WireFrame(
          WireFrame.Kind(rawValue: frame.head.kind.rawValue), tag: frame.head.tag,
          serial: frame.head.serial, body: Array(pending[body]))
        start += frame.length
        return .frame(Reading(frame: read, isIntact: true))
      }
    }
    return nil
  }

  /// Takes the next complete frame of the native protocol; nil if more bytes are needed.
  package mutating func nextNative() -> Reading? {
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
