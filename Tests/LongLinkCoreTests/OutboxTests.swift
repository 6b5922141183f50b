// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

@Suite struct OutboxTests {
  private func request(_ serial: UInt32, _ count: Int) -> FrameHead {
    FrameHead(.request, tag: 1, serial: serial, length: count)
  }

  private func append(
    _ outbox: inout Outbox, _ serial: UInt32, _ body: [UInt8]
  ) -> Outbox.Placement {
    outbox.append(request(serial, body.count), metadata: nil) { span in body.encode(into: &span) }
  }

  private func write(_ outbox: inout Outbox, _ most: Int = .max) -> [UInt8] {
    let bytes = Array(outbox.nextBytes.prefix(most))
    outbox.wrote(bytes.count)
    return bytes
  }

  @Test func `offsets count the bytes of the stream`() {
    var outbox = Outbox()
    #expect(append(&outbox, 50, [1, 2]) == .encoded(at: 0))
    #expect(append(&outbox, 51, []) == .encoded(at: 18))
    #expect(outbox.written == 0 && outbox.encodedBytes == 34)
    #expect(write(&outbox, 20).count == 20)
    #expect(outbox.written == 20)
    #expect(append(&outbox, 52, []) == .encoded(at: 34))
    #expect(write(&outbox).count == 30)
    #expect(outbox.written == 50 && outbox.isEmpty)
  }

  @Test func `small messages that wait count with what they cost beside their bytes`() {
    var outbox = Outbox()
    while outbox.encodedBytes < outbox.encodeLimit {
      _ = append(&outbox, 50, [UInt8](repeating: 1, count: 16_000))
    }
    let before = outbox.heldBytes
    for serial: UInt32 in 51..<1_051 { #expect(append(&outbox, serial, [1]) == .queued) }
    #expect(outbox.kept.bytes == 17_000)
    // More than ten times their bytes on the wire.
    #expect(outbox.heldBytes - before == 17_000 + 256_000)
  }

  /// An outbox that a body can reach while it is encoded, as one of a client on its loop does.
  private final class Holder {
    @safe @exclusivity(unchecked) var outbox = Outbox()
  }

  @Test func `a body that sends something while it is encoded traps`() async {
    await #expect(processExitsWith: .failure) {
      let holder = Holder()
      holder.outbox.encode(FrameHead(.push, tag: 1, serial: 0, length: 1)) { span in
        holder.outbox.encode(FrameHead(.ping, serial: 1, length: 0))
        span.append(1)
      }
    }
    await #expect(processExitsWith: .success) {
      let holder = Holder()
      for _ in 0..<2 {
        holder.outbox.encode(FrameHead(.push, tag: 1, serial: 0, length: 1)) { span in
          span.append(1)
        }
        _ = try? holder.outbox.encode(FrameHead(.push, tag: 1, serial: 0, length: 1)) {
          (_) throws(BodyError) in throw BodyError(.malformed, detail: "")
        }
      }
      precondition(holder.outbox.frames == 2)
    }
  }

  /// Sends a push that is kept back, whose body sends another one of `count` bytes.
  private static func nest(_ count: Int) {
    let holder = Holder()
    holder.outbox.usesFragments = true
    func send(_ count: Int, _ body: () -> Void) {
      let head = FrameHead(.push, tag: 1, serial: 0, length: count)
      _ = holder.outbox.append(head, metadata: nil) { span in
        body()
        for _ in 0..<count { span.append(1) }
      }
    }
    send(Wire.fragmentLimit + 1) { send(count) {} }
  }

  @Test func `a body that sends something while it is encoded to be kept back traps`() async {
    await #expect(processExitsWith: .failure, "the other is encoded at once") { Self.nest(1) }
    await #expect(processExitsWith: .failure, "the other is kept back too") {
      Self.nest(Wire.fragmentLimit + 1)
    }
  }

  @Test func `frames that are withdrawn are skipped in any order`() {
    for seed: UInt64 in 0..<40 {
      var dice = Seeded(seed)
      var outbox = Outbox()
      var places: [UInt32: UInt64] = [:]
      for serial: UInt32 in 50..<70 {
        if case .encoded(let begin) = append(&outbox, serial, dice.bytes(dice.below(30))) {
          places[serial] = begin
        }
      }
      let gone = Set((50..<70).map { UInt32($0) }.shuffled(using: &dice).prefix(dice.below(21)))
      for serial in gone.shuffled(using: &dice) {
        #expect(outbox.withdraw(.request, serial: serial, encodedAt: places[serial]) == .unsent)
        #expect(outbox.withdraw(.request, serial: serial, encodedAt: places[serial]) == .tooLate)
      }
      var stream: [UInt8] = []
      while outbox.encodedBytes > 0 { stream += write(&outbox, 1 + dice.below(60)) }
      let kept = (50..<70).map { UInt32($0) }.filter { !gone.contains($0) }
      #expect(RawFrame.parse(stream).frames.map(\.serial) == kept)
      #expect(RawFrame.parse(stream).consumed == stream.count)
    }
  }

  @Test func `frames that were encoded for many peers do not starve those that are held back`() {
    var outbox = Outbox()
    outbox.usesFragments = true
    let frame = [UInt8](repeating: 0, count: 50_000)
    for _ in 0..<2 { outbox.append(encoded: frame) }
    #expect(append(&outbox, 51, [UInt8](repeating: 1, count: 200_000)) == .queued)
    var passed = 0
    var hasBegun = false
    while !hasBegun, passed < 20 * Wire.fragmentLimit {
      outbox.append(encoded: frame)
      passed += frame.count
      _ = write(&outbox, frame.count)
      outbox.refill { _ in hasBegun = true }
    }
    #expect(hasBegun && passed < 7 * Wire.fragmentLimit + 2 * frame.count)
  }

  @Test func `a frame of which a byte has left is not taken back`() {
    var outbox = Outbox()
    _ = append(&outbox, 50, [1, 2, 3])
    _ = write(&outbox, 1)
    #expect(outbox.withdraw(.request, serial: 50, encodedAt: 0) == .tooLate)
    #expect(outbox.withdraw(.request, serial: 99, encodedAt: nil) == .tooLate)
    #expect(outbox.withdraw(.request, serial: 99, encodedAt: 5000) == .tooLate)
  }

  @Test func `a message in fragments is taken back whole until its first byte leaves`() {
    for wrote in [16, 17] {
      var outbox = Outbox()
      outbox.usesFragments = true
      var place: UInt64?
      #expect(append(&outbox, 50, []) == .encoded(at: 0))
      #expect(append(&outbox, 51, [UInt8](repeating: 1, count: 200_000)) == .queued)
      outbox.refill { event in
        if case .began(_, _, let begin) = event { place = begin }
      }
      #expect(place == 16 && outbox.encodedBytes == 16 + 65_552)
      _ = append(&outbox, 52, [1])
      _ = write(&outbox, wrote)
      let found = outbox.withdraw(.request, serial: 51, encodedAt: place)
      #expect(found == (wrote == 16 ? .unsent : .partial))
      #expect(outbox.kept.bytes == 0)
      #expect(outbox.encodedBytes == 17 + (wrote == 16 ? 0 : 65_551))
    }
  }

  @Test func `above the high water frames are kept back, and let go below half of it`() {
    var outbox = Outbox(encodeLimit: 1000)
    _ = append(&outbox, 50, [UInt8](repeating: 1, count: 1500))
    #expect(append(&outbox, 51, []) == .queued)
    #expect(append(&outbox, 52, [1, 2]) == .queued)
    #expect(outbox.kept.bytes == 34 && outbox.totalBytes == 1516 + 34)
    _ = write(&outbox, 1016)
    var events: [Outbox.Event] = []
    outbox.refill { events.append($0) }
    #expect(events == [])
    _ = write(&outbox, 1)
    outbox.refill { events.append($0) }
    #expect(events.count == 2, "the first one fills the half again")
    _ = write(&outbox, 17)
    outbox.refill { events.append($0) }
    #expect(
      events == [
        .began(.request, serial: 51, at: 1516), .finished(.request, serial: 51),
        .began(.request, serial: 52, at: 1532), .finished(.request, serial: 52),
      ])
    #expect(outbox.kept.bytes == 0)
  }

  @Test func `control frames pass all frames that are held back`() {
    var outbox = Outbox(encodeLimit: 1000)
    _ = append(&outbox, 50, [UInt8](repeating: 1, count: 1500))
    _ = append(&outbox, 51, [])
    outbox.encode(FrameHead(.cancel, serial: 50, length: 0))
    #expect(RawFrame.parse(write(&outbox)).frames.map(\.kind) == [0, 4])
  }

  @Test(arguments: 0..<25)
  func `the decoded frames are those that were sent, without the withdrawn ones`(seed: Int) {
    var model = OutboxModel(seed: UInt64(seed))
    for _ in 0..<120 { model.step() }
    model.finish()
    #expect(model.problems == [])
  }
}

/// An outbox, and a receiver that puts together what comes out of it.
private struct OutboxModel: ~Copyable {
  private var outbox: Outbox
  private var dice: Seeded
  private var sent: [UInt32: [UInt8]] = [:]
  private var places: [UInt32: UInt64] = [:]
  private var withdrawn: Set<UInt32> = []
  private var partial: Set<UInt32> = []
  private var pushes: [[UInt8]] = []
  private var nextSerial: UInt32 = 50
  private var stream: [UInt8] = []
  var problems: [String] = []

  init(seed: UInt64) {
    dice = Seeded(seed)
    outbox = Outbox(encodeLimit: [2_000, 70_000, 262_144][dice.below(3)])
    outbox.usesFragments = dice.below(4) > 0
  }

  mutating func step() {
    switch dice.below(6) {
    case 0, 1: appendRequest()
    case 2: appendPush()
    case 3: withdraw()
    default: write(1 + dice.below(dice.below(2) == 0 ? 100 : 150_000))
    }
    if outbox.written != UInt64(stream.count) + skipped { problems.append("offset") }
  }

  private var skipped: UInt64 { outbox.written - UInt64(stream.count) }

  private mutating func body() -> [UInt8] {
    dice.bytes([0, dice.below(50), dice.below(3000), 65_536 + dice.below(140_000)][dice.below(4)])
  }

  private mutating func appendRequest() {
    let body = body()
    let serial = nextSerial
    nextSerial += 1
    sent[serial] = body
    let head = FrameHead(.request, tag: 1, serial: serial, length: body.count)
    let priority = UInt32(dice.below(3))
    let placement = outbox.append(head, metadata: nil, priority: priority) { span in
      body.encode(into: &span)
    }
    if case .encoded(let begin) = placement { places[serial] = begin } else { refill() }
  }

  private mutating func appendPush() {
    let body = body()
    pushes.append(body)
    let head = FrameHead(.push, tag: 1, serial: 1, length: body.count)
    if case .queued = outbox.append(head, metadata: nil, { $0.appendAll(body) }) { refill() }
  }

  private mutating func withdraw() {
    guard nextSerial > 50 else { return }
    let serial = 50 + UInt32(dice.below(Int(nextSerial - 50)))
    guard !withdrawn.contains(serial), !partial.contains(serial) else { return }
    switch outbox.withdraw(.request, serial: serial, encodedAt: places[serial]) {
    case .unsent: withdrawn.insert(serial)
    case .partial: partial.insert(serial)
    case .tooLate:
      if let begin = places[serial], begin >= outbox.written { problems.append("not withdrawn") }
    }
  }

  private mutating func refill() {
    var began: [(UInt32, UInt64)] = []
    outbox.refill { event in
      if case .began(.request, let serial, let begin) = event { began.append((serial, begin)) }
    }
    for (serial, begin) in began { places[serial] = begin }
  }

  private mutating func write(_ most: Int) {
    let bytes = Array(outbox.nextBytes.prefix(most))
    stream += bytes
    outbox.wrote(bytes.count)
    refill()
  }

  mutating func finish() {
    while !outbox.isEmpty { write(.max) }
    if outbox.totalBytes != 0 { problems.append("\(outbox.totalBytes) bytes are left") }
    let (frames, consumed) = RawFrame.parse(stream)
    if consumed != stream.count { problems.append("half a frame") }
    var open: [UInt32: [UInt8]] = [:]
    var received: [UInt32: [UInt8]] = [:]
    var receivedPushes: [[UInt8]] = []
    for frame in frames {
      open[frame.serial, default: []] += frame.body
      guard frame.flags & 1 == 0 else { continue }
      let whole = open.removeValue(forKey: frame.serial)!
      if frame.kind == 6 { receivedPushes.append(whole) } else { received[frame.serial] = whole }
    }
    let expected = sent.filter { !withdrawn.contains($0.key) && !partial.contains($0.key) }
    if received != expected { problems.append("requests differ") }
    if receivedPushes != pushes { problems.append("pushes differ") }
    if !Set(open.keys).isSubset(of: partial) { problems.append("unfinished messages") }
  }
}

extension OutputRawSpan {
  fileprivate mutating func appendAll(_ bytes: [UInt8]) {
    bytes.encode(into: &self)
  }
}
