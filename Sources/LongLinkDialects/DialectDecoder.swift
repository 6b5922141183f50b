// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// A decoder of a dialect's frames at the front of a stream. Any input is safe.
package struct DialectDecoder: DialectDecoding {
  package let codec: DialectCodec
  /// The number of bytes at the front that need not be searched again.
  package internal(set) var searched = 0
  /// Whether a packet was damaged and the decoder is searching for the start of the next one.
  package internal(set) var isLost = false

  package init(_ codec: DialectCodec) {
    self.codec = codec
  }

  /// Decodes the front of `bytes`, which begin where the last step ended and contain everything
  /// received since. An escaped body is unescaped in place.
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

  /// Abandons a frame that was only partly received. Returns nil if the connection must end,
  /// because without a delimiter the start of the next frame cannot be found.
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
      // The guard above ensures that the header is there.
      let facts = try unsafe codec.validate(header: bytes)
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
