// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// The parts of a connection that have a rule of their own.
@Suite struct ConnectionPartTests {
  // MARK: FrameProgress

  @Test func `the time of a frame begins with its first part alone`() {
    var frame = FrameProgress()
    var isFirst = [frame.begin(), frame.begin()]
    frame.complete(1_000, body: 984)
    isFirst.append(frame.begin())
    frame.stop()
    isFirst.append(frame.begin())
    #expect(isFirst == [true, false, true, true])
  }

  @Test func `a record is incomplete since its first part, until whole ones have come`() {
    var frame = FrameProgress()
    var began = [frame.recordGrows(at: .ms(1)), frame.recordGrows(at: .ms(2))]
    frame.recordEnds()
    began.append(frame.recordGrows(at: .ms(3)))
    #expect(began == [.ms(1), .ms(1), .ms(3)])
  }

  /// What is expected, what is present, and the rest to make room for.
  @Test(arguments: [(0, 500, nil), (1_000, 499, nil), (1_000, 500, 500), (1_000, 999, 1)])
  func `room is made for the rest of a frame of which half is there`(
    length: Int, present: Int, rest: Int?
  ) {
    var frame = FrameProgress()
    frame.expect(length)
    #expect(frame.rest(after: present) == rest)
    frame.complete()
    #expect(frame.rest(after: present) == nil)
  }

  @Test func `a frame is large from a body of 16 KiB on`() {
    var frame = FrameProgress()
    frame.complete(16_399, body: 16_383)
    #expect(frame.readSize(upTo: 50_000, present: 0) == 50_000)
    frame.complete(16_400, body: 16_384)
    #expect(frame.readSize(upTo: 50_000, present: 0) == 3 * 16_400)
    // A small one afterwards changes nothing, and neither does the end of one in a dialect.
    frame.complete(100, body: 84)
    frame.complete()
    #expect(frame.readSize(upTo: 50_000, present: 400) == 16_000 + 2 * 16_400)
  }

  // MARK: ReadHold

  @Test func `reading is held above the smaller of two bounds, or while the peer is slowed`() {
    var hold = ReadHold(at: .ms(0))
    #expect(!hold.holds(unread: 500, of: 1_000))
    #expect(hold.holds(unread: 501, of: 1_000))
    hold.mostUnread = 100
    #expect(!hold.holds(unread: 100, of: 1_000))
    #expect(hold.holds(unread: 101, of: 1_000))
    let changed = [hold.setSlowed(true), hold.setSlowed(true)]
    #expect(changed == [true, false])
    #expect(hold.holds(unread: 0, of: 1_000))
    let ended = [hold.setSlowed(false), hold.setSlowed(false)]
    #expect(ended == [true, false])
    #expect(!hold.holds(unread: 0, of: 1_000))
  }

  @Test func `a frame waits for one turn of the handlers, and the next frame for another`() {
    var hold = ReadHold(at: .ms(0))
    var waits = [hold.awaitsHandlers()]
    #expect(hold.waitsForHandlers)
    hold.handlersHadTurn()
    #expect(!hold.waitsForHandlers)
    waits.append(hold.awaitsHandlers())
    #expect(!hold.waitsForHandlers)
    hold.handlersTurnEnds()
    waits.append(hold.awaitsHandlers())
    #expect(waits == [true, false, true])
    // Only a turn that they have had can end.
    hold.handlersTurnEnds()
    #expect(hold.waitsForHandlers)
  }

  // MARK: MetadataMemo

  private func repeats(_ memo: MetadataMemo, _ block: [UInt8]) -> Bool {
    // Neither escapes the call.
    unsafe memo.repeats(block.span.bytes)
  }

  @Test(arguments: [0, 1, 6, 8, 9, 200])
  func `metadata is repeated only by the same bytes`(count: Int) {
    let block = (0..<count).map { UInt8($0 & 0xFF) }
    var memo = MetadataMemo()
    memo.remember(ReceivedMetadata(), block)
    #expect(repeats(memo, block))
    #expect(!repeats(memo, block + [0]))
    for index in block.indices {
      var other = block
      other[index] ^= 0x80
      #expect(!repeats(memo, other))
    }
    // Read in one piece with what follows it, which does not count.
    var word: UInt64 = 0
    for index in 0..<8 {
      let byte = index < count ? block[index] : 0xEE
      word |= UInt64(byte) << UInt64(8 * index)
    }
    #expect(memo.repeats(word, count: count) == (count <= 8))
    #expect(!memo.repeats(word, count: count + 1))
    if count > 0 { #expect(!memo.repeats(word ^ 1, count: count)) }
  }

  @Test func `metadata that is too long to remember is repeated by nothing`() {
    var memo = MetadataMemo()
    memo.hold(ReceivedMetadata())
    #expect(memo.isForgotten)
    #expect(!repeats(memo, []))
    #expect(!memo.repeats(0, count: 0))
    #expect(!MetadataMemo().isForgotten)
  }

  // MARK: SendMarks

  @Test func `senders wait from the high mark on until the low one is reached`() {
    let limits = WaterMarks(high: 100, low: 50, large: 1_000)
    var marks = SendMarks()
    // Small and large bytes that wait; then what is above, and whether senders can continue.
    let steps: [(Int, Int, Bool, Bool, Bool)] = [
      (99, 999, false, false, false), (100, 0, true, false, false), (51, 0, true, false, false),
      (50, 0, false, false, true), (0, 1_000, false, true, false), (0, 501, false, true, false),
      (100, 500, true, false, true), (0, 0, false, false, true),
    ]
    var exceeded: UInt64 = 0
    for (small, large, isAbove, isAboveLarge, hasFallen) in steps {
      #expect(
        marks.mayCross(small + large, limits) || !(isAbove || isAboveLarge || hasFallen))
      let change = marks.update(small: small, large: large, limits)
      exceeded += change.exceeded
      #expect(marks.isAbove == isAbove && marks.isAboveLarge == isAboveLarge)
      #expect(change.hasFallen == hasFallen)
      #expect(marks.admits(Wire.fragmentLimit) == !isAbove)
      #expect(marks.admits(Wire.fragmentLimit + 1) == !(isAbove || isAboveLarge))
    }
    #expect(exceeded == 3)
  }

  // MARK: RequestOrdinals

  @Test func `the peer's count of accepted requests skips the withdrawn ones`() {
    var ordinals = RequestOrdinals()
    let taken = (1...5).map { _ in ordinals.next() }
    #expect(taken == [1, 2, 3, 4, 5])
    ordinals.withdraw(4)
    ordinals.withdraw(2)
    // The peer saw the requests 1, 3 and 5.
    #expect((0...3).map { ordinals.ordinal(ofAccepted: $0) } == [0, 1, 3, 5])
  }
}
