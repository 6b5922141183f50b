// SPDX-License-Identifier: Apache-2.0

/// A point in time on a monotonic clock, in nanoseconds from an arbitrary origin.
///
/// Instants of one event loop can be compared with each other. Instants of different machines, or
/// of a simulation and the kernel, cannot.
public struct LinkInstant: InstantProtocol, Hashable, Sendable {
  /// Nanoseconds since the clock's origin.
  public var nanoseconds: Int64

  /// Makes an instant from nanoseconds since the clock's origin.
  @inlinable public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// Returns the instant `duration` later, clamped to the representable range.
  public func advanced(by duration: Duration) -> LinkInstant {
    self + duration.clampedNanoseconds
  }

  /// Returns the time from this instant to `other`; negative if `other` is earlier.
  public func duration(to other: LinkInstant) -> Duration {
    .nanoseconds(other - self)
  }

  /// Orders instants of one clock.
  @inlinable public static func < (lhs: LinkInstant, rhs: LinkInstant) -> Bool {
    lhs.nanoseconds < rhs.nanoseconds
  }

  /// An instant that has passed on every clock.
  @inlinable package static var distantPast: LinkInstant { LinkInstant(nanoseconds: .min) }

  /// An instant that is never reached.
  @inlinable package static var distantFuture: LinkInstant { LinkInstant(nanoseconds: .max) }

  /// Adds nanoseconds, clamped to the representable range.
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

extension LinkInstant: CustomStringConvertible {
  /// Seconds since the clock's origin, such as `3508.799106781 s`.
  public var description: String {
    let (whole, part) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
    let digits = String(part)
    let sign = nanoseconds < 0 ? "-" : ""
    return "\(sign)\(whole).\(String(repeating: "0", count: 9 - digits.count))\(digits) s"
  }
}

extension Duration {
  /// The duration in whole nanoseconds, clamped to 64 bits (292 years in either direction).
  package var clampedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    if carried { return seconds < 0 ? .min : .max }
    return sum
  }

  /// The duration in whole milliseconds, rounded up and clamped to an unsigned 32-bit number.
  package var wireMilliseconds: UInt32 {
    let nanoseconds = clampedNanoseconds
    guard nanoseconds > 0 else { return 0 }
    let milliseconds = (nanoseconds - 1) / 1_000_000 + 1
    return milliseconds > Int64(UInt32.max) ? .max : UInt32(milliseconds)
  }
}
