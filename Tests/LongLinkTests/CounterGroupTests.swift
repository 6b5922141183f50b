// SPDX-License-Identifier: Apache-2.0

import LongLink
import Testing

@Suite struct CounterGroupTests {
  @Test func `each counter of a group is summed`() {
    expectSums(of: ConnectionCounters())
    expectSums(of: RequestCounters())
  }

  private func expectSums<Group: CounterGroup>(of zero: Group) {
    var filled = zero
    unsafe withUnsafeMutableBytes(of: &filled) { bytes in
      let words = unsafe bytes.assumingMemoryBound(to: UInt64.self)
      for index in words.indices { unsafe words[index] = UInt64(index) + 1 }
    }
    var sum = filled
    sum += filled
    sum += zero
    // Nothing but words is a field, and no word lies between fields.
    let fields = Mirror(reflecting: sum).children.map { $0.value as? UInt64 }
    #expect(fields == (1...MemoryLayout<Group>.size / 8).map { UInt64($0) * 2 })
  }
}
