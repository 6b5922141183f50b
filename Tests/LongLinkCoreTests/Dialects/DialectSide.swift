// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import Testing

/// One end of a connection that speaks a dialect: it writes frames, and reads what it is given.
struct DialectSide {
  let codec: DialectCodec
  private var decoder: DialectDecoder
  private var input: [UInt8] = []
  /// The frames that have been read, with their bodies.
  private(set) var frames: [(frame: DialectFrame, body: [UInt8])] = []
  private(set) var damages: [Violation] = []
  private(set) var violation: Violation?
  private(set) var skipped = 0

  init(_ dialect: FrameDialect, _ role: Role) throws {
    let width =
      dialect.layout.shape(from: role).header
      .first { $0.meaning == .token }?.width ?? 0
    try self.init(dialect, role, token: (0..<width).map { UInt8(0x41 + $0 % 26) })
  }

  init(_ dialect: FrameDialect, _ role: Role, token: [UInt8]) throws {
    codec = try DialectCodec(dialect, role: role, token: token)
    decoder = DialectDecoder(codec)
  }

  /// The bytes of a frame; nil where the body may not be sent.
  func bytes(_ head: FrameHead, about: MessageType = 0, _ body: [UInt8] = []) -> [UInt8]? {
    var queue = ByteQueue()
    var head = head
    head.length = body.count
    head.about = about.rawValue
    let isSent = queue.append(capacity: codec.room(forBody: body.count)) { span in
      let start = codec.begin(&span)
      body.encode(into: &span)
      return codec.finish(head, from: start, in: &span)
    }
    return isSent ? queue.takeAll() : nil
  }

  func request(_ type: UInt32, _ serial: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    bytes(FrameHead(.request, tag: type, serial: serial, length: 0), body)!
  }

  func response(
    _ code: ResponseCode, _ serial: UInt32, to type: MessageType, _ body: [UInt8] = []
  ) -> [UInt8] {
    bytes(
      FrameHead(.response, tag: code.rawValue, serial: serial, length: 0), about: type, body)!
  }

  func push(_ type: UInt32, _ body: [UInt8] = []) -> [UInt8] {
    bytes(FrameHead(.push, tag: type, length: 0), body)!
  }

  func cancel(_ serial: UInt32, of type: MessageType) -> [UInt8] {
    bytes(FrameHead(.cancel, serial: serial, length: 0), about: type)!
  }

  func ping(_ serial: UInt32) -> [UInt8] {
    bytes(FrameHead(.ping, serial: serial, length: 0))!
  }

  func pong(_ serial: UInt32) -> [UInt8] {
    bytes(FrameHead(.pong, serial: serial, length: 0))!
  }

  /// Takes bytes in and reads what is whole.
  mutating func read(_ bytes: some Sequence<UInt8>) {
    input += bytes
    while violation == nil, step() {}
  }

  /// Gives up a frame that does not end.
  mutating func abandonFrame() {
    guard !input.isEmpty, let given = decoder.abandonFrame() else { return }
    _ = take(given)
    while violation == nil, step() {}
  }

  /// Bytes that wait to become a frame.
  var waiting: Int { input.count }
  var isLost: Bool { decoder.isLost }

  private mutating func step() -> Bool {
    let step = unsafe input.withUnsafeMutableBytes { unsafe decoder.next(in: $0) }
    return take(step)
  }

  private mutating func take(_ step: DialectStep) -> Bool {
    switch step {
    case .needMore(let count):
      #expect(count > input.count, "it asked for what it had")
      return false
    case .frame(let frame):
      frames.append((frame, Array(input[frame.body])))
      #expect(frame.head.length == frame.body.count)
      input.removeFirst(frame.length)
    case .damaged(let count, let violation):
      damages.append(violation)
      input.removeFirst(count)
    case .skipped(let count):
      skipped += count
      input.removeFirst(count)
    case .violation(let violation):
      self.violation = violation
    }
    return true
  }

  /// What was read, in short.
  var heads: [String] {
    frames.map { frame, body in
      "\(frame.head.kind) \(frame.head.tag) \(frame.head.serial) \(body.count)"
    }
  }

  mutating func clear() { frames = [] }
}

extension FrameDialect {
  /// Text lines: a delimiter around each body.
  static func delimited(
    _ inside: FrameLayout.Delimiter.Inside, _ bytes: [UInt8] = [0x0D, 0x0A],
    maximumBody: Int = 1000, summed: Bool = true
  ) throws -> FrameDialect {
    var fields: [FrameLayout.Field] = [.constant(2, 0xABCD), .type(2), .serial(4)]
    if inside == .lengthChecked { fields.append(.length(4, of: .frame)) }
    if summed { fields.append(.checksum(4, .adler32, over: .headerAndBody)) }
    let layout = try FrameLayout(
      request: FrameLayout.Shape(header: fields),
      response: FrameLayout.Shape(header: fields + [.code(2)]),
      delimiter: FrameLayout.Delimiter(bytes, inside: inside))
    return try FrameDialect(
      layout: layout, serials: Serials(client: 1...1000),
      heartbeat: HeartbeatFrames(server: Ping(type: 1, serials: 1...9)),
      pushes: Pushes(fromServer: [2...3]),
      cancel: Cancel(type: 4, target: inside == .refused ? .serial : .body),
      codes: Codes(success: [200], failure: 500), maximumBody: maximumBody)
  }
}
