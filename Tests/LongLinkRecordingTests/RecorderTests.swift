// SPDX-License-Identifier: Apache-2.0

#if Operations
@testable import LongLinkCore
import LongLinkScenarios
import Testing

/// The ring, and what it keeps of frames.
@Suite("The recorder")
struct RecorderTests {
  private static let now = LinkInstant(nanoseconds: 1_000)

  private static func recorder(_ capacity: Int = 65_536, bodies: Bool = false) -> Recorder {
    Recorder(capacity: capacity, recordsBodies: bodies, epoch: 1_700_000_000_000_000_000, loop: 0)
  }

  private static func file(_ recorder: Recorder) throws -> RecordingFile {
    try RecordingFile(RecordingWriter.file([recorder.snapshot()], names: [:]))
  }

  /// A frame of a kind, with metadata if that is not nil.
  private static func frame(
    _ kind: FrameKind, serial: UInt32, metadata: [UInt8]? = nil, body: [UInt8]
  ) -> [UInt8] {
    var outbox = Outbox()
    let block = metadata.map { MetadataBlock($0) }
    var head = FrameHead(kind, serial: serial, length: body.count)
    if let block {
      head = FrameHead(message: kind, tag: 7, serial: serial, block, count: body.count)
    }
    _ = outbox.encode(head, metadata: block) { span in body.encode(into: &span) }
    return outbox.takeEncoded()
  }

  private static func number(of event: RecordingFile.Packet) -> UInt64? {
    guard case .event(let event) = event.content else { return nil }
    return event.event == .ping ? nil : event.numbers.first
  }

  @Test("a full ring forgets its oldest records, and snapshots keep theirs")
  func turnsOver() throws {
    let recorder = Self.recorder(Recorder.leastCapacity)
    for number in 0..<100 { recorder.note(.probe, of: 1, at: Self.now, UInt64(number)) }
    let early = recorder.snapshot()
    for number in 100..<10_000 { recorder.note(.probe, of: 1, at: Self.now, UInt64(number)) }
    let numbers = try Self.file(recorder).packets.compactMap(Self.number)
    #expect(numbers.last == 9_999)
    #expect(numbers == Array((numbers.first ?? 0)...9_999))
    // At most the capacity, at least seven of its eight segments.
    #expect((500...683).contains(numbers.count))
    let kept = try RecordingFile(RecordingWriter.file([early], names: [:])).packets
    #expect(kept.compactMap(Self.number) == Array(0..<100))
    #expect(recorder.snapshot().hasForgotten)
    #expect(!early.hasForgotten)
  }

  @Test("frames are the same however reads and writes cut them", arguments: [false, true])
  func cutsFrames(bodies: Bool) throws {
    var generator = SystemRandomNumberGenerator()
    let frames = (0..<200).map { index -> [UInt8] in
      let body = (0..<Int.random(in: 0...300, using: &generator)).map { UInt8($0 % 251 + 1) }
      switch index % 4 {
      case 0: return Self.frame(.request, serial: 100, body: body)
      case 1: return Self.frame(.response, serial: 100, metadata: [8, 100], body: body)
      case 2: return Self.frame(.ping, serial: 0, body: [1, 2, 3])
      default: return Self.frame(.item, serial: 100, body: body)
      }
    }
    let stream = frames.flatMap(\.self)
    let recorder = Self.recorder(1 << 20, bodies: bodies)
    var (begin, position) = (0, 0)
    while position < stream.count {
      let count = min(Int.random(in: 1...120, using: &generator), stream.count - position)
      Self.read(stream[begin..<position + count], count, recorder)
      Self.write(stream[position...], count, recorder)
      position += count
      begin = Self.lastBoundary(frames, before: position)
    }
    let packets = try Self.file(recorder).packets
    for direction in [RecordingWriter.Direction.received, .sent] {
      let kept = packets.compactMap { packet -> ([UInt8], Int)? in
        guard case .frame(direction, let kept, let size) = packet.content else { return nil }
        return (kept, size)
      }
      try #require(kept.map(\.1) == frames.map(\.count))
      for ((kept, _), frame) in zip(kept, frames) {
        let isControl = frame[0] & 0x3F == FrameKind.ping.rawValue
        let most = bodies || isControl ? frame.count : 16 + (frame[0] & 0x80 == 0 ? 0 : 4)
        #expect(kept == Array(frame.prefix(most)))
      }
    }
  }

  private static func lastBoundary(_ frames: [[UInt8]], before position: Int) -> Int {
    var sum = 0
    for frame in frames {
      guard sum + frame.count <= position else { break }
      sum += frame.count
    }
    return sum
  }

  private static func read(_ input: ArraySlice<UInt8>, _ count: Int, _ recorder: Recorder) {
    unsafe input.withUnsafeBytes {
      unsafe recorder.noteInput(
        count, in: $0, of: 1, at: now, from: .client, isParsed: true)
    }
  }

  private static func write(_ output: ArraySlice<UInt8>, _ count: Int, _ recorder: Recorder) {
    unsafe output.withUnsafeBytes {
      unsafe recorder.noteOutput(
        count, of: $0, of: 1, at: now, from: .client, isParsed: true)
    }
  }

  // MARK: Secrets

  private static let secret = Array("s3cr3t-t0k3n".utf8)

  private static func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
    [number << 3 | 2, UInt8(bytes.count)] + bytes
  }

  private static func entry(_ key: String, _ value: [UInt8] = secret) -> [UInt8] {
    field(4, field(1, Array(key.utf8)) + field(2, value))
  }

  private static func hello(_ body: [UInt8]) -> [UInt8] { frame(.hello, serial: 3, body: body) }

  private static func request(_ metadata: [UInt8]) -> [UInt8] {
    frame(.request, serial: 100, metadata: metadata, body: [])
  }

  /// A hello with a credential and what names the client, a request with credentials among its
  /// metadata, and a renewal.
  private static let secretFrames = [
    hello([8, 1] + field(7, secret) + field(8, Array("name".utf8)) + field(12, secret)),
    request(
      entry("x", Array("no credential".utf8)) + entry("Authorization") + entry("COOKIE") + [8, 5]),
    frame(.renewal, serial: 0, body: secret),
  ]

  /// Frames in which a secret is easily missed.
  private static let oddFrames: [[[UInt8]]] = [
    // The shortest ones.
    [hello(field(7, secret))],
    [hello(field(12, secret))],
    [request(entry("cookie", Array(secret.prefix(4))))],
    // The value before the name of an entry.
    [request(field(4, field(2, secret) + field(1, Array("cookie".utf8))) + [8, 5])],
    // Something before the secret that cannot be read: a group, in the message or in the entry.
    [hello([0x1B] + field(7, secret))],
    [request([0x1B] + entry("cookie"))],
    [request(field(4, [0x1B] + field(1, Array("cookie".utf8)) + field(2, secret)))],
    // Fields that go on behind the end.
    [hello([0x3A, 120] + secret)],
    [request([0x22, 120] + field(1, Array("cookie".utf8)) + field(2, secret))],
    // Another protocol, whose first letters look like a ping, a cancel and an end.
    [Array("HEAD / HTTP/1.1\r\nAuthorization: s3cr3t-t0k3n\r\n\r\n".utf8)],
    [Array("DELETE / HTTP/1.1\r\nCookie: s3cr3t-t0k3n\r\n\r\n".utf8)],
    [Array("CONNECT a HTTP/1.1\r\nAuthorization: s3cr3t-t0k3n\r\n\r\n".utf8)],
  ]

  @Test("no credential is recorded, wherever a read is cut", arguments: [false, true])
  func blanksSecrets(bodies: Bool) throws {
    for frames in [Self.secretFrames] + Self.oddFrames {
      let stream = frames.flatMap(\.self)
      for cut in 1..<stream.count {
        let recorder = Self.recorder(bodies: bodies)
        Self.read(stream[..<cut], cut, recorder)
        let begin = Self.lastBoundary(frames, before: cut)
        Self.read(stream[begin...], stream.count - cut, recorder)
        Self.write(stream[...], cut, recorder)
        Self.write(stream[cut...], stream.count - cut, recorder)
        let file = RecordingWriter.file([recorder.snapshot()], names: [:])
        // Four bytes of it in a row would be a part of the secret.
        for start in 0...Self.secret.count - 4 {
          let part = Array(Self.secret[start..<start + 4])
          #expect(!file.contains(part), "cut at \(cut) of \(stream): the file has \(part)")
        }
      }
    }
  }

  @Test("a frame is the same if its bytes come one by one", arguments: [false, true])
  func drips(bodies: Bool) throws {
    let plain = [
      Self.frame(.request, serial: 100, metadata: [], body: [7, 8, 9]),
      Self.frame(.response, serial: 100, metadata: [8, 100], body: [7, 8, 9]),
      Self.frame(.push, serial: 1, body: [7, 8, 9]),
    ]
    for frames in [plain, Self.secretFrames] {
      func kept(_ read: (Recorder) -> Void) throws -> [[UInt8]] {
        let recorder = Self.recorder(bodies: bodies)
        read(recorder)
        return try Self.file(recorder).packets.compactMap { packet in
          if case .frame(.received, let kept, _) = packet.content { kept } else { nil }
        }
      }
      let stream = frames.flatMap(\.self)
      let whole = try kept { Self.read(stream[...], stream.count, $0) }
      let dripped = try kept { recorder in
        for count in 1...stream.count {
          let begin = Self.lastBoundary(frames, before: count - 1)
          Self.read(stream[begin..<count], 1, recorder)
        }
      }
      #expect(whole.count == frames.count)
      #expect(dripped == whole)
    }
  }

  @Test("a large block is looked through once, however its bytes drip")
  func looksOnce() throws {
    // Thousands of fields that could be credentials, and then the body, a byte at a time.
    let block = [[UInt8]](repeating: [0x22, 0], count: 30_000).flatMap(\.self)
    let stream = Self.frame(
      .request, serial: 100, metadata: block, body: [UInt8](repeating: 9, count: 2_000))
    let recorder = Self.recorder(1 << 20)
    let head = stream.count - 2_000
    Self.read(stream[..<head], head, recorder)
    for count in head + 1...stream.count { Self.read(stream[..<count], 1, recorder) }
    let frames = try Self.file(recorder).packets.compactMap { packet -> [UInt8]? in
      guard case .frame(.received, let kept, _) = packet.content else { return nil }
      return kept
    }
    #expect(frames.map(\.count) == [head])
  }

  @Test("a failure marks the record of its link, wherever it begins")
  func marksFailures() throws {
    let recorder = Self.recorder()
    for size in 0..<8 {
      // The parts of a frame have any size, so that the next record begins anywhere.
      let stream = Self.frame(
        .request, serial: 100, metadata: [UInt8](repeating: 0, count: size), body: [])
      Self.read(stream[...], stream.count, recorder)
      recorder.note(.respond, of: 1, at: Self.now, 7, 5)
      recorder.noteFailure(of: 1)
      recorder.noteFailure(of: 2)
      recorder.note(.ping, of: 2, at: Self.now)
      recorder.noteFailure(of: 2)
    }
    let events = try Self.file(recorder).packets.compactMap { packet -> RecordingFile.Event? in
      if case .event(let event) = packet.content { event } else { nil }
    }
    #expect(
      events.filter { $0.event == .respond }.map(\.numbers)
        == .init(
          repeating: [7, 5 | 1 << 40], count: 8))
    #expect(events.count { $0.event == .ping } == 8)
  }

  @Test("what is no credential stays")
  func keepsOtherFields() throws {
    let recorder = Self.recorder()
    let stream = Self.secretFrames.flatMap(\.self)
    Self.read(stream[...], stream.count, recorder)
    let file = RecordingWriter.file([recorder.snapshot()], names: [:])
    #expect(file.contains(Array("name".utf8)))
    #expect(file.contains(Array("Authorization".utf8)))
    #expect(file.contains(Array("no credential".utf8)))
  }
}
#endif
