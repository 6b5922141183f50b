// SPDX-License-Identifier: Apache-2.0

import CMeasuredAdler32
import Dispatch
import Foundation

/// The speed of LongLink's checksum relative to zlib's. Both have to give the same results.
package struct Adler32Ratio: Codable {
  /// The number of bytes summed up.
  package let size: Int
  package let ratio: Summary.Spread
  /// LongLink's, in bytes per second.
  package let speed: Summary.Spread

  private typealias ZlibFunction =
    @convention(c) (CUnsignedLong, UnsafePointer<UInt8>?, CUnsignedInt) -> CUnsignedLong

  /// Measures both in turns; nil without zlib.
  package static func measure(size: Int, rounds: Int) throws -> Adler32Ratio? {
    #if canImport(Darwin)
    let library = dlopen("libz.dylib", RTLD_NOW)
    #else
    let library = dlopen("libz.so.1", RTLD_NOW)
    #endif
    guard let library, let symbol = dlsym(library, "adler32") else { return nil }
    let zlib = unsafeBitCast(symbol, to: ZlibFunction.self)
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    var own: [Double] = []
    var theirs: [Double] = []
    for _ in 0..<rounds {
      let first = speed(of: bytes) { cll_adler32($0, bytes, size) }
      let second = speed(of: bytes) { UInt32(zlib(CUnsignedLong($0), bytes, CUnsignedInt(size))) }
      guard first.sum == second.sum else {
        throw BenchError("the checksum of \(size) bytes is not zlib's")
      }
      own.append(first.speed)
      theirs.append(second.speed)
    }
    return Adler32Ratio(
      size: size, ratio: Summary.Spread(zip(own, theirs).map { $0 / $1 }),
      speed: Summary.Spread(own))
  }

  /// Sums up the same bytes repeatedly, each time continuing the previous sum, in slices so short
  /// that the fastest of them was not interrupted.
  private static func speed(
    of bytes: [UInt8], _ function: (UInt32) -> UInt32
  ) -> (speed: Double, sum: UInt32) {
    let times = max(1, (1 << 18) / bytes.count)
    var sum: UInt32 = 1
    var least = UInt64.max
    for _ in 0..<200 {
      let begin = DispatchTime.now().uptimeNanoseconds
      for _ in 0..<times { sum = function(sum) }
      least = min(least, DispatchTime.now().uptimeNanoseconds - begin)
    }
    return (Double(times * bytes.count) * 1e9 / Double(least), sum)
  }

  package var text: String {
    let name = size < 1_024 ? "\(size) B" : "\(size / 1_024) KiB"
    return String(
      format: "adler32 of %@: %.1f times zlib's speed (%.1f–%.1f), %.1f GB/s", name, ratio.median,
      ratio.least, ratio.most, speed.median / 1e9)
  }
}
