import Histogram

extension Histogram {
  /// How many values lie between one power of two and the next, from the first that has one to the
  /// last.
  var octaves: [(from: UInt64, count: UInt64)] {
    var numbers = [UInt64](repeating: 0, count: UInt64.bitWidth + 1)
    for step in recordedValues() {
      let least = lowestEquivalentForValue(step.value)
      numbers[UInt64.bitWidth - least.leadingZeroBitCount] += UInt64(step.count)
    }
    let seen = numbers.indices.filter { numbers[$0] > 0 }
    guard let first = seen.first, let last = seen.last else { return [] }
    return (first...last).map { index in
      (from: index == 0 ? 0 : 1 << UInt64(index - 1), count: numbers[index])
    }
  }
}
