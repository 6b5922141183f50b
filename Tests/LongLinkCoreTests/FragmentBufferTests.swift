// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// The memory of what arrives in fragments.
@Suite struct FragmentBufferTests {
  /// A buffer, and what it must hold and may allocate.
  private struct Model {
    var buffer = FragmentBuffer()
    var bytes: [UInt8] = []
    /// What may follow.
    var credit: Int
    /// Each piece changes the capacity.
    var pieces = 0

    /// What may be allocated for these pieces besides their bytes. The system rounds each up.
    var overhead: Int { pieces * (FragmentBuffer.pieceOverhead + 32) }

    mutating func append(_ fragment: [UInt8]) {
      let capacity = buffer.capacity
      credit -= fragment.count
      unsafe fragment.withUnsafeBytes { unsafe buffer.append($0, credit: credit) }
      bytes += fragment
      if buffer.capacity != capacity { pieces += 1 }
    }
  }

  private static func fragment(_ size: Int, _ dice: inout Seeded) -> [UInt8] {
    (0..<size).map { _ in UInt8(dice.below(256)) }
  }

  @Test(arguments: 0..<20)
  func `fragments are joined in order, and room is made within the credit`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    let largest = [1, 30, 300, 3_000, 30_000][dice.below(5)]
    var model = Model(credit: 65_536)
    var grants = 1
    for _ in 0..<200 {
      if model.credit < largest {
        model.credit += largest + dice.below(65_536)
        grants += 1
      }
      model.append(Self.fragment(1 + dice.below(largest), &dice))
      let (count, room) = (model.buffer.count, model.buffer.room - model.overhead)
      #expect(count == model.bytes.count)
      #expect(room <= model.credit)
      #expect(room <= max(count / 2, FragmentBuffer.leastPiece))
      #expect(room <= FragmentBuffer.mostPiece)
      #expect(model.pieces <= count / FragmentBuffer.leastPiece + grants)
    }
    let last = Self.fragment(dice.below(2) * dice.below(70_000), &dice)
    let whole = unsafe last.withUnsafeBytes { unsafe model.buffer.joined(with: $0) }
    #expect(whole == model.bytes + last)
    // The system gives whole pages to large arrays.
    #expect(whole.capacity <= whole.count + 4_096)
  }

  @Test func `many small fragments take few pieces, and no more than half beyond their bytes`() {
    var model = Model(credit: 16_777_216)
    for number in 0..<100_000 { model.append([UInt8(truncatingIfNeeded: number)]) }
    #expect(model.pieces < 40)
    #expect(model.buffer.capacity <= 150_000 + model.overhead)
    #expect(model.buffer.joined() == model.bytes)
  }

  @Test func `an item that came in fragments is kept in no more memory than it needs`() throws {
    let side = opened(.server)
    side.receive(streamRequest(50))
    _ = side.takeEvents()
    let body = [UInt8](repeating: 7, count: 10_000)
    for index in 0..<5 {
      side.receive(RawFrame(.item, flags: index < 4 ? .more : [], serial: 50, body: body))
    }
    guard case .item(50, let item) = try #require(side.takeEvents().first) else {
      Issue.record("the item has not come")
      return
    }
    #expect(item == [UInt8](repeating: 7, count: 50_000))
    #expect(item.capacity <= 50_000 + 4_096)
  }

  @Test func `the memory of fragments is counted until their message is whole or given up`() {
    let side = opened(.server) { $0.maxBody = 1_048_576 }
    side.receive(streamRequest(50), streamRequest(51))
    let before = side.connection.held.used
    let fragment = [UInt8](repeating: 1, count: 400)
    for serial: UInt32 in [50, 51] {
      for _ in 0..<3 {
        side.receive(RawFrame(.item, flags: .more, serial: serial, body: fragment))
      }
    }
    side.receive(RawFrame(.request, flags: .more, tag: 9, serial: 52, body: fragment))
    #expect(side.connection.streams.partialRoom > 0)
    #expect(side.connection.held.used > before + 7 * 400)
    side.receive(RawFrame(.item, serial: 50, body: []))
    side.receive(RawFrame(.cancel, serial: 51), RawFrame(.cancel, serial: 52))
    #expect(side.connection.streams.partialRoom == 0 && side.connection.assemblies.capacity == 0)
  }
}
