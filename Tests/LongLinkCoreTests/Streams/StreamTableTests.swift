// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// The accounts of streams, without a connection.
@Suite struct StreamTableTests {
  private static let serial: UInt32 = 50
  private static let now = LinkInstant.ms(1)

  private func table(
    window: Int = 2_000, total: Int = 100_000, isShort: Bool = false
  ) -> StreamTable {
    var settings = ConnectionSettings(role: .server)
    settings.isShort = isShort
    settings.maxBody = 5_000
    settings.windows.first = window
    settings.windows.largest = window
    settings.windows.total = total
    return StreamTable(settings)
  }

  /// The slot of a stream with items of the peer, and of this side with this credit.
  private func open(_ table: inout StreamTable, credit: UInt32? = nil) -> Int {
    var metadata = ReceivedMetadata()
    metadata.items = true
    metadata.credit = credit
    let hasRoom = try? table.open(Self.serial, metadata)
    #expect(hasRoom == true)
    return table.slot(of: Self.serial)!
  }

  private func head(_ length: Int, isPart: Bool = false) -> FrameHead {
    FrameHead(.item, flags: isPart ? .more : [], serial: Self.serial, length: length)
  }

  private func append(_ count: Int, to table: inout StreamTable, _ slot: Int) {
    let bytes = [UInt8](repeating: 1, count: count)
    unsafe bytes.withUnsafeBytes { unsafe table.append($0, to: Self.serial, slot) }
  }

  @Test func `an item costs its frames, and is whole with the last one`() throws {
    var table = table()
    let slot = open(&table)
    let overhead = Wire.itemOverhead
    var parts = [try table.arrived(head(100), in: slot, at: Self.now)]
    parts.append(try table.arrived(head(200, isPart: true), in: slot, at: Self.now))
    append(200, to: &table, slot)
    parts.append(try table.arrived(head(300), in: slot, at: Self.now))
    #expect(
      parts == [
        .whole(cost: 100 + overhead), .fragment, .last(cost: 500 + 2 * overhead),
      ])
    let inflow = table[slot].incoming
    #expect(inflow?.credit == 2_000 - 600 - 3 * overhead)
    #expect(inflow?.untaken == 600 + 3 * overhead)
  }

  @Test func `the peer needs credit, except on a short link`() throws {
    var long = table()
    let slot = open(&long)
    do {
      _ = try long.arrived(head(2_000), in: slot, at: Self.now)
      Issue.record("credit that is not there")
    } catch {
      #expect(error.rule == .creditExceeded)
    }
    var short = table(isShort: true)
    let other = open(&short)
    let part = try short.arrived(head(2_000), in: other, at: Self.now)
    #expect(part == .whole(cost: 2_000 + Wire.itemOverhead))
    var isFull = [short.isFull(Self.serial)]
    let grant = short.took(2_000 + Wire.itemOverhead, of: Self.serial, at: Self.now)
    isFull.append(short.isFull(Self.serial))
    #expect(grant == .nothing && isFull == [true, false])
  }

  @Test func `credit is granted again for what was taken, as far as the windows allow`() throws {
    var table = table()
    let slot = open(&table)
    _ = try table.arrived(head(1_500), in: slot, at: Self.now)
    let cost = 1_500 + Wire.itemOverhead
    let granted = table.took(cost, of: Self.serial, at: Self.now)
    #expect(granted == .credit(cost))
    let unknown = table.took(1, of: 52, at: Self.now)
    #expect(unknown == nil)
  }

  @Test func `an item that is larger than its window goes on`() throws {
    var table = table(total: 2_000)
    let slot = open(&table)
    _ = try table.arrived(head(1_500, isPart: true), in: slot, at: Self.now)
    append(1_500, to: &table, slot)
    var grants = [table.grant(slot, at: Self.now)]
    grants.append(table.grant(slot, at: Self.now))
    #expect(grants == [.credit(1_000), .nothing])
  }

  @Test func `an item waits for credit, and goes on in fragments`() throws {
    var table = table()
    let slot = open(&table, credit: 1_024)
    let isAffordable = [table.affords(1_000, slot), table.affords(2_000, slot)]
    #expect(isAffordable == [true, false])
    table.enqueue([UInt8](repeating: 7, count: 2_000), of: Self.serial, slot)
    let first = 1_024 - Wire.itemOverhead
    guard case .fragment(_, 0, first, true, _) = table.nextPiece(of: Self.serial) else {
      Issue.record("no fragment")
      return
    }
    var steps = [table.fragmentSent(Self.serial)]
    let waits = table.nextPiece(of: Self.serial) == .nothing && table.awaitsPending(Self.serial)
    let credit = FrameHead(.credit, serial: Self.serial, length: 4)
    let isCredited = try table.credited(5_000, by: credit, in: slot)
    #expect(waits && isCredited)
    guard case .fragment(_, first, 2_000 - first, false, _) = table.nextPiece(of: Self.serial)
    else {
      Issue.record("no last fragment")
      return
    }
    steps.append(table.fragmentSent(Self.serial))
    #expect(steps == [.within, .whole(isAwaited: true)])
    let ends = [table.endItems(Self.serial), table.endItems(Self.serial)]
    let isEnd = table.nextPiece(of: Self.serial) == .end
    #expect(ends == [true, false] && isEnd)
    let takesMore = table.takesItem(slot)
    #expect(!takesMore && table.heldBytes == 0)
  }
}
