// SPDX-License-Identifier: Apache-2.0

/// A point on a monotonic clock, in nanoseconds from an origin that only its clock knows.
///
/// Instants of one event loop can be compared with each other; instants of different machines, or
/// of a simulation and the kernel, cannot.
public struct LinkInstant: InstantProtocol, Hashable, Sendable {
  /// Nanoseconds since the clock's origin.
  public var nanoseconds: Int64

  /// Makes an instant from nanoseconds since the clock's origin.
  @inlinable public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The instant `duration` later, or the last one that can be told where that is past it.
  public func advanced(by duration: Duration) -> LinkInstant {
    self + duration.clampedNanoseconds
  }

  /// How long after this instant `other` comes; negative when it comes before.
  public func duration(to other: LinkInstant) -> Duration {
    .nanoseconds(other - self)
  }

  /// Orders instants of one clock.
  @inlinable public static func < (lhs: LinkInstant, rhs: LinkInstant) -> Bool {
    lhs.nanoseconds < rhs.nanoseconds
  }

  /// The instant that no timer reaches.
  @inlinable package static var distantFuture: LinkInstant { LinkInstant(nanoseconds: .max) }

  /// Adds nanoseconds, staying at the ends of the range instead of wrapping.
  @inlinable package static func + (instant: LinkInstant, nanoseconds: Int64) -> LinkInstant {
    let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(nanoseconds)
    guard overflow else { return LinkInstant(nanoseconds: sum) }
    return LinkInstant(nanoseconds: nanoseconds < 0 ? .min : .max)
  }

  /// Nanoseconds from `rhs` to `lhs`.
  @inlinable package static func - (lhs: LinkInstant, rhs: LinkInstant) -> Int64 {
    let (difference, overflow) = lhs.nanoseconds.subtractingReportingOverflow(rhs.nanoseconds)
    guard overflow else { return difference }
    return lhs > rhs ? .max : .min
  }
}

extension Duration {
  /// The duration in whole nanoseconds, held within what 64 bits can tell (292 years either way).
  package var clampedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    if carried { return seconds < 0 ? .min : .max }
    return sum
  }

  /// The duration in whole milliseconds, rounded up, held within 0 and the largest u32.
  package var wireMilliseconds: UInt32 {
    let nanoseconds = clampedNanoseconds
    guard nanoseconds > 0 else { return 0 }
    let milliseconds = (nanoseconds - 1) / 1_000_000 + 1
    return milliseconds > Int64(UInt32.max) ? .max : UInt32(milliseconds)
  }
}
