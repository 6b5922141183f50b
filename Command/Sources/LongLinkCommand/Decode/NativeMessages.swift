// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// The unfinished messages of a native stream: they determine what their next fragments contain.
struct NativeMessages {
  private struct Begun {
    let kind: FrameKind
    let tag: UInt32
    var fragments = 0
    /// The number of metadata bytes still to come, and those that have come.
    var metadataLeft = 0
    var metadata: [UInt8] = []
    /// Whether some of the metadata was left out of a recording.
    var lacksMetadata = false
  }

  private var begun: [UInt32: Begun] = [:]
  private var items = NativeItems()

  /// Splits a frame into metadata and payload, and sets its fragment number. The end of its body
  /// may have been left out of a recording. Returns the rule that the frame breaks, if any.
  mutating func take(
    _ head: FrameHead, _ body: ArraySlice<UInt8>, into frame: inout DecodedFrame
  ) -> Violation.Rule? {
    frame.body = Array(body)
    frame.leftOut = head.length - body.count
    let isOfStream = [.item, .end, .credit].contains(head.kind)
    if isOfStream, begun[head.serial]?.kind == .request { return .itemNotExpected }
    switch head.kind {
    case .request, .response, .push:
      return message(head, body, into: &frame)
    case .item: return items.item(head, into: &frame)
    case .end: return items.end(head.serial)
    case .credit: return items.credit(head.serial, body, into: &frame)
    case .cancel:
      begun[head.serial] = nil
      items.cancelled(head.serial)
    case .ping, .pong, .hello, .welcome, .goaway, .ignorable, .renewal:
      break
    }
    return nil
  }

  private mutating func message(
    _ head: FrameHead, _ body: ArraySlice<UInt8>, into frame: inout DecodedFrame
  ) -> Violation.Rule? {
    let earlier = begun.removeValue(forKey: head.serial)
    let hasMore = head.flags.contains(.more)
    if let earlier, earlier.tag != head.tag || head.flags.contains(.metadata) {
      return .fragmentMismatch
    }
    var length = head.length
    if hasMore && length == 0 || (hasMore || earlier != nil) && length > Wire.fragmentLimit {
      return .sizeNotAllowed
    }
    var message = earlier ?? Begun(kind: head.kind, tag: head.tag)
    message.fragments += 1
    var rest = body
    if head.flags.contains(.metadata) {
      guard length >= 2 else { return .metadataTooLong }
      message.metadataLeft = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(2)
      length -= 2
    }
    let count = min(message.metadataLeft, length)
    let metadata = rest.prefix(count)
    if head.flags.contains(.metadata) || count > 0 { frame.metadata = Array(metadata) }
    message.metadataLeft -= count
    message.metadata += metadata
    if metadata.count < count { message.lacksMetadata = true }
    frame.body = Array(rest.dropFirst(metadata.count))
    if hasMore || earlier != nil { frame.fragment = message.fragments }
    if earlier == nil, head.kind == .response,
      let problem = items.answered(head.serial, tag: head.tag)
    {
      return problem
    }
    if hasMore {
      begun[head.serial] = message
      return nil
    }
    if message.metadataLeft > 0 { return .metadataTooLong }
    guard head.kind == .request else { return nil }
    return items.asked(head.serial, message.lacksMetadata ? nil : message.metadata)
  }
}
