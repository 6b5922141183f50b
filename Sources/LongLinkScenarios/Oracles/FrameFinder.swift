// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting

/// Finds the ends of frames in a stream of bytes, without keeping bodies.
struct FrameFinder {
  private var header: [UInt8] = []
  private var rest = 0
  private(set) var position = 0
  /// The length of the first frame; nil before it is known.
  private(set) var firstLength: Int?
  /// Where the last ping ends, as a count of the stream's bytes; nil if none came since it was
  /// taken.
  private var lastPingEnd: Int?

  mutating func take(_ bytes: [UInt8]) {
    var index = 0
    while index < bytes.count {
      if rest > 0 {
        let skipped = min(rest, bytes.count - index)
        rest -= skipped
        index += skipped
        continue
      }
      let missing = WireFrame.headerLength - header.count
      let taken = min(missing, bytes.count - index)
      header += bytes[index..<index + taken]
      index += taken
      if taken == missing { frameBegan(at: position + index - WireFrame.headerLength) }
    }
    position += bytes.count
  }

  /// Returns where the last ping ends; nil if no ping came since the last call.
  mutating func takePingEnd() -> Int? { lastPingEnd.take() }

  private mutating func frameBegan(at start: Int) {
    rest = Int(header.word(at: 8))
    let length = WireFrame.headerLength + rest
    if firstLength == nil { firstLength = length }
    if header[0] & 0x3F == FrameKind.ping.rawValue { lastPingEnd = start + length }
    header.removeAll(keepingCapacity: true)
  }
}
