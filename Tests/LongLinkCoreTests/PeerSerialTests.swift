// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Tables of serials that a peer picks.
@Suite struct PeerSerialTests {
  @Test func `a secret spreads serials that would collide without it`() {
    for (mix, expected) in [(UInt32(0), 1_000...1_000), (0x9E37_79B1, 1...8)] {
      var table = SerialTable<Int>(mix: mix)
      let serials = (0..<1_000).map { UInt32(64 + $0 << 16) }
      for serial in serials { table[serial] = Int(serial) }
      var rows: [Int: Int] = [:]
      for serial in serials { rows[table.home(of: serial), default: 0] += 1 }
      #expect(expected.contains(rows.values.max()!))
      let removed = serials.map { table.remove($0) }
      #expect(removed == serials.map { Int($0) })
    }
  }

  @Test func `a table with a secret is a table`() {
    var dice = Seeded(7)
    var table = SerialTable<UInt32>(mix: 0x1234_5677)
    var model: [UInt32: UInt32] = [:]
    for step: UInt32 in 0..<20_000 {
      let serial = UInt32(1 + dice.below(300))
      if dice.below(2) == 0 {
        table[serial] = step
        model[serial] = step
      } else {
        let removed = table.remove(serial)
        #expect(removed == model.removeValue(forKey: serial))
      }
      if dice.below(2_000) == 0 {
        table.removeAll()
        model = [:]
      }
    }
    let keys = table.keys.sorted()
    #expect(keys == model.keys.sorted())
    let copy = table.copy()
    for (serial, value) in model {
      let copied = copy[serial]
      #expect(copied == value)
    }
  }

  @Test func `the serials of a type are found in the order in which they came`() {
    var dice = Seeded(8)
    var typed = TypedSerials(mix: 0)
    var model: [(serial: UInt32, type: MessageType)] = []
    for _ in 0..<20_000 {
      let serial = UInt32(50 + dice.below(200))
      let type: MessageType = [0, 1, 2, 0xFF_FFFF][dice.below(4)]
      if let index = model.firstIndex(where: { $0.serial == serial }) {
        let type = typed[serial]
        #expect(type == model[index].type)
        model.remove(at: index)
        typed.remove(serial)
      } else {
        let isThere = typed[serial] != nil
        #expect(!isThere)
        model.append((serial, type))
        typed.insert(serial, type)
      }
      let first = typed.first(of: type)
      #expect(first == model.first { $0.type == type }?.serial)
    }
    while let first = model.first {
      let serial = typed.first(of: first.type)
      #expect(serial == first.serial)
      model.removeFirst()
      typed.remove(first.serial)
    }
    let last = typed.first(of: 0)
    #expect(last == nil)
  }
}
