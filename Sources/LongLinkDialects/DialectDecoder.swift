// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// Reads the frames of a dialect from the front of a stream, whatever its bytes are.
package struct DialectDecoder: DialectDecoding {
  package let codec: DialectCodec
  /// Bytes at the front that need not be searched again.
  package internal(set) var searched = 0
  /// Whether a packet was damaged and the beginning of the next one is looked for.
  package internal(set) var isLost = false

  package init(_ codec: DialectCodec) {
    self.codec = codec
  }

  /// What stands at the front of `bytes`, which begin where the last step ended and hold all that
  /// has come since. An escaped body is unescaped in place.
  package mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> DialectStep {
    let step =
      codec.incoming.delimiter.isEmpty
      ? unsafe counted(UnsafeRawBufferPointer(bytes)) : unsafe delimited(bytes)
    switch step {
    case .frame, .damaged, .skipped: searched = 0
    case .needMore, .violation: break
    }
    return step
  }

  /// Gives up the frame of which bytes have come, and whose end does not come. Nil where that is
  /// the end of the connection, since only a delimiter could tell where the next frame begins.
  package mutating func abandonFrame() -> DialectStep? {
    guard !codec.incoming.delimiter.isEmpty else { return nil }
    guard !isLost else { return .skipped(0) }
    isLost = true
    searched = 0
    return .damaged(0, Violation(.frameTimeout))
  }

  private func counted(_ bytes: UnsafeRawBufferPointer) -> DialectStep {
    let plan = codec.incoming
    guard bytes.count >= plan.headerLength else { return .needMore(atLeast: plan.headerLength) }
    do throws(Violation) {
      // The header is there, as was just checked.
      let facts = try unsafe codec.judge(header: bytes)
      let body = plan.lead..<plan.lead + facts.length!
      guard bytes.count >= body.upperBound + plan.tail else {
        return .needMore(atLeast: body.upperBound + plan.tail)
      }
      return .frame(
        try unsafe codec.frame(facts, bytes, body, length: body.upperBound + plan.tail))
    } catch {
      return .violation(error)
    }
  }
}
