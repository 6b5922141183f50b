// SPDX-License-Identifier: Apache-2.0

/// Counters that are summed together: a struct of `UInt64` and nothing else.
package protocol CounterGroup: BitwiseCopyable {}

extension CounterGroup {
  /// Adds each counter of `addend` to the same one of `sum`.
  package static func += (sum: inout Self, addend: Self) {
    unsafe withUnsafeBytes(of: addend) { addend in
      unsafe withUnsafeMutableBytes(of: &sum) { sum in
        let addend = unsafe addend.assumingMemoryBound(to: UInt64.self)
        let sum = unsafe sum.assumingMemoryBound(to: UInt64.self)
        for index in sum.indices { unsafe sum[index] += addend[index] }
      }
    }
  }
}
