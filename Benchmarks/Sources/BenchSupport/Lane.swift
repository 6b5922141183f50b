// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// One of the callers that each keep a request in flight. It is used by its caller alone.
///
/// Each has a body of its own, so that an answer that went to the wrong caller is found.
package final class Lane: Sendable {
  /// The caller's number among all of them.
  package let number: UInt64
  /// The body of each of its requests: the number in its first 8 bytes, then a pattern.
  package let body: [UInt8]
  private let meter: Meter
  private let timedStride: UInt64
  private let answers = Atomic<UInt64>(0)
  private let hasEnded = Atomic(false)
  // Two callers' counts are never in one line of the cache.
  private let padding: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0)

  init(number: UInt64, load: Load, meter: Meter) {
    self.number = number
    self.meter = meter
    timedStride = load.timedStride
    var bytes = (0..<load.body).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for index in 0..<min(8, bytes.count) {
      bytes[index] = UInt8(truncatingIfNeeded: number >> (UInt64(index) * 8))
    }
    body = bytes
  }

  /// A request that has begun.
  package struct Request: Sendable {
    /// 0 where it is not timed.
    fileprivate let time: UInt64
    /// Whether its answer is looked at to the last byte.
    package let isCompared: Bool
  }

  /// The next request begins.
  @inline(__always)
  package func begin() -> Request {
    let count = answers.load(ordering: .relaxed)
    return Request(
      time: count % timedStride == 0 ? Usage.nanoseconds() : 0,
      isCompared: count % Load.comparedStride == 0)
  }

  /// Its answer has come; false when no request is to follow. Ends the process where the answer is
  /// not the body that was sent.
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

  /// Its answer has come, and was compared by the caller.
  @inline(__always)
  package func answered(_ request: Request, isRight: Bool) -> Bool {
    guard isRight else { Meter.fail("an answer is not what was sent") }
    if request.time != 0 { meter.took(Usage.nanoseconds() - request.time) }
    answers.store(answers.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    guard meter.isStopped.load(ordering: .relaxed) else { return true }
    hasEnded.store(true, ordering: .releasing)
    return false
  }

  var count: UInt64 { answers.load(ordering: .relaxed) }
  var isAtRest: Bool { hasEnded.load(ordering: .acquiring) }
}
