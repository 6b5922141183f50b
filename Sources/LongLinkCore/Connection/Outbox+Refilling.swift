// SPDX-License-Identifier: Apache-2.0

extension Outbox {
  /// Encodes queued messages while there is room, and reports each step.
  package mutating func refill(_ report: (Event) -> Void) {
    while let next = kept.next(), bytes.count < room(for: next) {
      encodePiece(of: next, report)
    }
  }

  /// The number of encoded bytes below which a piece is encoded.
  ///
  /// For a fragment it is less than a fragment's size. So no two fragments of one message wait
  /// encoded, unless one was overdue; then fragments of other messages are between them. The same
  /// goes for an item of any size, as in `takesItem`: else each item of a fast writer would take
  /// the way through the backlog.
  private func room(for next: Backlog.Next) -> Int {
    let half = encodeLimit / 2
    let waits = next.isLarge || kept[next.slot].head.kind == .item
    return waits && !next.isOverdue ? min(half, Wire.fragmentLimit) : half
  }

  /// Encodes a fragment, or the rest of a message.
  private mutating func encodePiece(of next: Backlog.Next, _ report: (Event) -> Void) {
    let message = kept[next.slot]
    let left = message.end - message.sent
    var head = message.head
    head.length = next.isLarge ? min(left, Wire.fragmentLimit) : left
    if head.length < left { head.flags.insert(.more) }
    if message.sent > 0 { head.flags.remove(.metadata) }
    let begin = end
    encode(head, of: message)
    if message.sent == 0 { report(.began(head.kind, serial: head.serial, at: begin)) }
    if head.length < left {
      kept.encoded(head.length, of: next.slot)
    } else {
      kept.finished(next.slot)
      report(.finished(head.kind, serial: head.serial))
    }
  }

  private mutating func encode(_ head: FrameHead, of message: Backlog.Message) {
    if dialect != nil {
      // Dialects have no fragments.
      encode(head) { span in message.body.encode(into: &span) }
      return
    }
    let range = message.sent..<message.sent + head.length
    // The queued body already includes the metadata block.
    let length = NativeLayout.headerLength + head.length
    unsafe bytes.append(count: length) { frame in
      let start = frame.baseAddress!
      unsafe message.body.withUnsafeBytes { buffer in
        let piece = unsafe UnsafeRawBufferPointer(rebasing: buffer[range])
        guard let source = piece.baseAddress else { return }
        // The frame has room for the header and the whole piece.
        unsafe (start + NativeLayout.headerLength).copyInPieces(
          from: source, byteCount: piece.count)
      }
      unsafe NativeLayout.seal(head, at: start)
    }
    end += UInt64(length)
  }
}
