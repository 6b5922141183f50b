// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// One of the callers, each of which keeps a request in flight. Only its caller uses it.
///
/// Each has its own body, so that a response that went to the wrong caller is detected.
package final class Lane: Sendable {
  /// The caller's number among all of them.
  package let number: UInt64
  /// The body of each of its requests: the number in its first 8 bytes, then a pattern.
  package let body: [UInt8]
  private let meter: Meter
  private let timedStride: UInt64
  private let answers = Atomic<UInt64>(0)
  private let hasEnded = Atomic(false)
  // Keeps two callers' counts out of the same cache line.
  private let padding: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0)

  init(number: UInt64, body count: Int, timedStride: UInt64, meter: Meter) {
    self.number = number
    self.meter = meter
    self.timedStride = timedStride
    var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for index in 0..<min(8, bytes.count) {
      bytes[index] = UInt8(truncatingIfNeeded: number >> (UInt64(index) * 8))
    }
    body = bytes
  }

  /// A request that has begun.
  package struct Request: Sendable {
    /// The time of its beginning; 0 if it is not timed.
    fileprivate let time: UInt64
    /// Whether its response is compared to the last byte.
    package let isCompared: Bool
  }

  /// Begins the next request.
  @inline(__always)
  package func begin() -> Request {
    let count = answers.load(ordering: .relaxed)
    return Request(
      time: count % timedStride == 0 ? Usage.nanoseconds() : 0,
      isCompared: count % Load.comparedStride == 0)
  }

  /// Records a response; returns false if no request should follow. Ends the process if it is not
  /// the body that was sent.
  @inline(__always)
  package func answered(_ request: Request, with bytes: UnsafeRawBufferPointer) -> Bool {
    answered(request, isRight: matches(bytes, upTo: request.isCompared ? body.count : 8))
  }

  private func matches(_ bytes: UnsafeRawBufferPointer, upTo most: Int) -> Bool {
    guard bytes.count == body.count else { return false }
    return body.withUnsafeBytes { body in
      guard let first = body.baseAddress, let other = bytes.baseAddress else { return true }
      return memcmp(first, other, min(most, body.count)) == 0
    }
  }

  /// Records a response that the caller has compared.
  @inline(__always)
  package func answered(_ request: Request, isRight: Bool) -> Bool {
    guard isRight else { Meter.fail("a response is not the body that was sent") }
    if request.time != 0 { meter.took(Usage.nanoseconds() - request.time) }
    answers.store(answers.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    guard meter.isStopped.load(ordering: .relaxed) else { return true }
    hasEnded.store(true, ordering: .releasing)
    return false
  }

  var count: UInt64 { answers.load(ordering: .relaxed) }
  var isAtRest: Bool { hasEnded.load(ordering: .acquiring) }
}
