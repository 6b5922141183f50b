// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore

/// How long a client may take for an answer, or for a piece of one that is streamed.
struct AnswerTime {
  private let end: NIODeadline
  /// The bytes that waited to be written when the client was last seen to take some.
  private var unwritten = 0

  init(from now: NIODeadline) {
    end = now + PortLimits.answerTime
  }

  /// Notes that something was written, of which so many bytes still wait, and returns the time to
  /// wait until `next`.
  mutating func wrote(unwritten: Int, at now: NIODeadline) -> TimeAmount {
    self.unwritten = unwritten
    return max(.zero, min(PortLimits.writeTime, end - now))
  }

  /// Returns the time to wait on, after which to call this again; nil if the client has taken
  /// nothing meanwhile, or has had its time.
  mutating func next(unwritten: Int, at now: NIODeadline) -> TimeAmount? {
    guard unwritten < self.unwritten, now < end else { return nil }
    return wrote(unwritten: unwritten, at: now)
  }
}
#endif
