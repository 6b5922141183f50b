// SPDX-License-Identifier: Apache-2.0

/// An outbox's state for writing in a dialect.
final class DialectOutput {
  let framing: any DialectFraming
  /// The positions of requests that have been encoded and not written.
  var requests = EncodedRequests()

  init(_ framing: any DialectFraming) {
    self.framing = framing
  }

  /// The number of bytes that a frame adds to its body.
  var overhead: Int { framing.room(forBody: 8) - 8 }
}

/// The positions and lengths of encoded requests, which a dialect's header may not contain.
struct EncodedRequests {
  private var stretches: [Range<UInt64>] = []
  private var head = 0

  mutating func append(_ stretch: Range<UInt64>) {
    stretches.append(stretch)
  }

  /// Forgets the requests of which any byte has been written.
  mutating func forget(before offset: UInt64) {
    while head < stretches.count, stretches[head].lowerBound < offset { head += 1 }
    guard head > 0, head >= stretches.count / 2 else { return }
    stretches.removeFirst(head)
    head = 0
  }

  /// The length of the request that begins at an offset.
  func length(at offset: UInt64) -> Int? {
    var range = head..<stretches.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      if stretches[middle].lowerBound < offset {
        range = middle + 1..<range.upperBound
      } else {
        range = range.lowerBound..<middle
      }
    }
    guard range.lowerBound < stretches.count, stretches[range.lowerBound].lowerBound == offset
    else { return nil }
    return stretches[range.lowerBound].count
  }
}

extension Outbox {
  mutating func encode<Failure>(
    _ head: FrameHead, in dialect: DialectOutput,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    let framing = dialect.framing
    let size = try bytes.append(capacity: framing.room(forBody: head.length)) {
      (span) throws(Failure) in
      let start = framing.begin(&span)
      let bodyStart = span.byteCount
      try body(&span)
      precondition(
        span.byteCount - bodyStart == head.length, "a body is not as long as its encodedByteCount")
      let isAllowed = framing.finish(head, from: start, in: &span)
      precondition(isAllowed, "a body contains the delimiter, unlike when it was checked")
      return span.byteCount - start
    }
    if head.kind == .request { dialect.requests.append(end..<end + UInt64(size)) }
    end += UInt64(size)
  }
}

extension DialectFraming {
  /// A readable explanation why a push cannot have this type; nil if it can.
  package func objection(toPush type: MessageType) -> String? {
    canSendPush(type) ? nil : "a push cannot have type \(type) in \(facts.name)"
  }

  /// Throws if a body contains the delimiter and the dialect forbids that.
  package func validate(_ body: some BodyEncodable) throws(BodyError) {
    guard facts.refusesDelimiter else { return }
    let bytes = try body.encodedBytes()
    let isAllowed = unsafe bytes.withUnsafeBytes { unsafe self.isAllowed($0) }
    guard isAllowed else {
      throw BodyError(.malformed, detail: "the body contains the delimiter")
    }
  }
}
