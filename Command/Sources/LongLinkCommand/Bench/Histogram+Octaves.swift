// SPDX-License-Identifier: Apache-2.0

import Histogram

extension Histogram {
  /// The values from one power of two to the next: in `from..<to`.
  struct Octave: Equatable {
    let from: UInt64
    let to: UInt64
    let count: UInt64
  }

  /// The non-empty octaves.
  var octaves: [Octave] {
    var counts = [UInt64](repeating: 0, count: UInt64.bitWidth + 1)
    for step in recordedValues() {
      let least = lowestEquivalentForValue(step.value)
      counts[UInt64.bitWidth - least.leadingZeroBitCount] += UInt64(step.count)
    }
    return counts.indices.filter { counts[$0] > 0 }.map { bits in
      Octave(
        from: bits == 0 ? 0 : 1 << UInt64(bits - 1),
        to: bits == UInt64.bitWidth ? .max : 1 << UInt64(bits), count: counts[bits])
    }
  }
}
