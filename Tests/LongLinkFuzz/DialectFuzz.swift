// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects

/// Dialects that the input describes, and bytes that their decoders are given.
enum DialectFuzz {
  /// What a decoder made of its bytes.
  private struct Outcome: Equatable {
    struct Frame: Equatable {
      var head: FrameHead
      var body: [UInt8]
    }
    var frames: [Frame] = []
    var damages: [Violation.Rule] = []
    var violation: Violation.Rule?
  }

  static func run(_ bytes: [UInt8], isDelimited: Bool) throws {
    var input = FuzzInput(bytes)
    let role = input.pick(Role.client, .server)
    guard let dialect = input.dialect(isDelimited: isDelimited) else { return }
    let cuts = input.take(4).map { Int($0 % 32) + 1 }
    let stream = input.rest()
    let field = dialect.layout.shape(from: role).header.first { $0.meaning == .token }
    let token = [UInt8](repeating: 7, count: field?.width ?? 0)
    let codec = try DialectCodec(dialect, role: role, token: token)
    let whole = try outcome(codec, stream, [max(1, stream.count)])
    let cut = try outcome(codec, stream, cuts.isEmpty ? [1] : cuts)
    // Where a packet is lost, what was at hand decides where the next one is found.
    if whole.damages.isEmpty, cut.damages.isEmpty {
      try expect(whole == cut, "the way in which the bytes are cut makes a difference")
    } else {
      try expect(isDelimited, "a packet was dropped without delimiters")
    }
    for frame in whole.frames { try check(frame, codec) }
  }

  /// What was read is written, and then read again.
  private static func check(_ frame: Outcome.Frame, _ codec: DialectCodec) throws(FuzzFailure) {
    let writer = codec.mirrored
    switch frame.head.kind {
    case .request:
      let type = MessageType(tag: frame.head.tag)
      guard writer.canSendRequest(type, serial: frame.head.serial) else { return }
    case .push:
      guard writer.canSendPush(MessageType(tag: frame.head.tag)) else { return }
    default: return
    }
    guard let bytes = writer.written(frame.head, frame.body) else { return }
    let again = try outcome(codec, bytes, [bytes.count])
    try expect(again.frames == [frame], "a frame has changed on its way")
  }

  private static func outcome(
    _ codec: DialectCodec, _ stream: [UInt8], _ cuts: [Int]
  ) throws(FuzzFailure) -> Outcome {
    var decoder = DialectDecoder(codec)
    var (outcome, input) = (Outcome(), [UInt8]())
    var (given, turn, steps) = (0, 0, 0)
    while outcome.violation == nil {
      let step = unsafe input.withUnsafeMutableBytes { unsafe decoder.next(in: $0) }
      steps += 1
      try expect(steps < 8 * stream.count + 64, "a decoder does not come to an end")
      switch step {
      case .needMore(let wanted):
        try expect(wanted > input.count, "a decoder wants what it has")
        guard given < stream.count else { return outcome }
        let end = min(stream.count, given + cuts[turn % cuts.count])
        input += stream[given..<end]
        (given, turn) = (end, turn + 1)
      case .frame(let frame):
        try expect((1...input.count).contains(frame.length), "a frame longer than its bytes")
        try expect(
          frame.body.lowerBound >= 0 && frame.body.upperBound <= frame.length,
          "a body outside of its frame")
        try expect(
          frame.body.count == frame.head.length
            && frame.body.count <= codec.dialect.maximumBody, "a body over the limit")
        outcome.frames.append(Outcome.Frame(head: frame.head, body: Array(input[frame.body])))
        input.removeFirst(frame.length)
      case .damaged(let count, let violation):
        try expect((0...input.count).contains(count), "more was dropped than there was")
        outcome.damages.append(violation.rule)
        input.removeFirst(count)
      case .skipped(let count):
        try expect((0...input.count).contains(count), "more was skipped than there was")
        input.removeFirst(count)
      case .violation(let violation):
        outcome.violation = violation.rule
      }
    }
    return outcome
  }
}

extension DialectCodec {
  /// A frame as this side writes it; nil where its body may not be sent.
  func written(_ head: FrameHead, _ body: [UInt8]) -> [UInt8]? {
    var queue = ByteQueue()
    let isWritten = queue.append(capacity: room(forBody: body.count)) { span in
      let start = begin(&span)
      body.encode(into: &span)
      return finish(head, from: start, in: &span)
    }
    return isWritten ? queue.takeAll() : nil
  }
}

extension FuzzInput {
  /// A dialect that works; nil where the input describes none.
  mutating func dialect(isDelimited: Bool) -> FrameDialect? {
    do {
      return try attempt(isDelimited ? delimiter() : nil)
    } catch {
      return nil
    }
  }

  private mutating func attempt(_ delimiter: FrameLayout.Delimiter?) throws -> FrameDialect {
    let (type, serial) = (pick(1, 2, 4, 8), pick(2, 4, 8))
    let flags = byte()
    let hasType = flags & 1 == 0
    let hasCode = flags & 2 == 0
    let isTwoSided = hasType && flags & 4 != 0
    let request = shape(type, serial, hasCode && flags & 8 != 0, delimiter)
    let response = shape(hasType ? type : nil, serial, hasCode, delimiter)
    let last: UInt32 = serial == 2 ? 0xFFFF : .max
    return try FrameDialect(
      name: "fuzz",
      layout: FrameLayout(
        byteOrder: pick(.big, .little), request: request, response: response,
        delimiter: delimiter),
      serials: FrameDialect.Serials(
        client: 20...(isTwoSided ? last / 2 : last),
        server: isTwoSided ? (last / 2 + 1)...last : nil),
      responseType: hasType ? pick(.echo, .offset(0x40), .fixed(0x50)) : .absent,
      heartbeat: FrameDialect.HeartbeatFrames(
        client: pick(nil, FrameDialect.Ping(type: 1, serials: 1...5)),
        server: pick(nil, FrameDialect.Ping(type: 1, serials: 6...9, answer: pick(1, 2, nil)))),
      pushes: FrameDialect.Pushes(
        fromServer: hasType ? [0x60...0x6F] : [], fromClient: [0x70...0x72, 0x74...0x74],
        serial: pick(0, 15)),
      cancel: pick(
        nil,
        FrameDialect.Cancel(type: 3, target: pick(.serial, serial > 2 ? .type : .serial, .body))),
      codes: hasCode || flags & 8 != 0
        ? FrameDialect.Codes(
          success: [0, 7], failure: 1,
          errors: [DialectErrorCode(9, "nine", native: .overloaded)]) : nil,
      unknownSerial: pick(.violation, .drop, .heartbeat),
      maximumBody: pick(16, 200, 5000))
  }

  private mutating func delimiter() -> FrameLayout.Delimiter {
    let bytes = (0..<1 + below(3)).map { _ in UInt8(below(3)) }
    let escape = UInt8(3 + below(3))
    return FrameLayout.Delimiter(bytes, inside: pick(.lengthChecked, .escaped(escape), .refused))
  }

  private mutating func shape(
    _ type: Int?, _ serial: Int, _ hasCode: Bool, _ delimiter: FrameLayout.Delimiter?
  ) -> FrameLayout.Shape {
    var header: [FrameLayout.Field] = [.serial(serial)]
    if let type { header.append(.type(type)) }
    if hasCode { header.append(.code(pick(1, 2, 4, 8))) }
    let flags = byte()
    if delimiter == nil || delimiter?.inside == .lengthChecked || flags & 1 != 0 {
      header.append(.length(pick(1, 2, 4, 8), of: pick(.body, .rest, .frame)))
    }
    if flags & 2 != 0 { header.append(.filler(1 + below(5), 0xEE)) }
    if flags & 4 != 0 { header.append(.token(1 + below(20))) }
    if flags & 8 != 0 { header.append(.constant(2, 0xABCD)) }
    header.swapAt(0, below(header.count))
    header.swapAt(header.count - 1, below(header.count))
    if flags & 16 != 0 { header[0] = header[0].ordered(pick(.big, .little)) }
    var trailer: [FrameLayout.Field] = []
    if flags & 32 != 0 {
      let from = header.first { $0.name != "filler" }?.name ?? "body"
      let sum = FrameLayout.Field.checksum(
        pick(4, 8), pick(.adler32, .crc32),
        over: pick(.body, .headerAndBody, .range(from: from, to: "body")))
      if delimiter == nil, flags & 64 != 0 {
        trailer.append(sum)
      } else {
        header.insert(sum, at: 0)
      }
    }
    if delimiter == nil, flags & 128 != 0 {
      if let type { trailer.append(.repeatedType(type)) }
      trailer.append(.version(1, 3))
    }
    return FrameLayout.Shape(header: header, trailer: trailer)
  }
}
