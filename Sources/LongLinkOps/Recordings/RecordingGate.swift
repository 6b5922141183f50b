// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore

/// Decides which recordings are written, and counts them: one at a time, and of each cause one in a
/// minute, so that who causes many does not drive out those of others.
struct RecordingGate {
  /// How many recordings there were.
  struct Counts: Sendable {
    /// The files that were written, by cause.
    var written: [String: UInt64] = [:]
    /// The causes that got no file, because another was being written or they had one just before.
    var skipped: UInt64 = 0
    /// The files that could not be written.
    var failed: UInt64 = 0
  }

  /// The cause of recordings that an operator asks for.
  static let operatorCause = "operator"
  /// The time from the beginning of a file to the next one of the same cause, in nanoseconds.
  static let interval: Int64 = 60_000_000_000

  private(set) var counts = Counts()
  private var isWriting = false
  /// When the last file of each cause began. There are as many causes as rules and reasons.
  private var began: [String: LinkInstant] = [:]

  /// Begins a recording of what a link has caused; returns false if it gets none.
  mutating func begins(_ cause: String, at now: LinkInstant) -> Bool {
    let isDue = began[cause].map { now - $0 >= Self.interval } ?? true
    guard isDue, !isWriting else {
      counts.skipped += 1
      return false
    }
    began[cause] = now
    isWriting = true
    return true
  }

  /// Begins a recording for an operator; returns false if another one is being written.
  mutating func beginsForOperator() -> Bool {
    guard !isWriting else { return false }
    isWriting = true
    return true
  }

  /// Ends a recording that was not to be written after all.
  mutating func givesUp() { isWriting = false }

  /// Ends a recording: it is in a file, or could not be written.
  mutating func ends(_ cause: String, isWritten: Bool) {
    isWriting = false
    if isWritten { counts.written[cause, default: 0] += 1 } else { counts.failed += 1 }
  }
}
#endif
