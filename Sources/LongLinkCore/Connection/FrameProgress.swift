// SPDX-License-Identifier: Apache-2.0

/// How much of the next frame has arrived, and so how much to read.
///
/// Reads end where large frames end, and room is made for the rest of one: a frame that is read in
/// part costs a copy.
struct FrameProgress: Equatable, Sendable {
  /// Whether the input ends with a part of a frame, which has to be complete in time.
  private(set) var hasBegun = false
  /// The size of the incomplete frame, in bytes; 0 if it is not known.
  private var length = 0
  /// The size of the last large frame, in bytes; 0 if there was none.
  private var large = 0
  /// When the first bytes of an incomplete record of the security arrived; nil without one.
  private var recordBegan: LinkInstant?

  /// The body size from which on a frame is large.
  private static let largeBody = 16_384

  /// Notes that a part of a frame is there. Returns whether it is the first one.
  mutating func begin() -> Bool {
    defer { hasBegun = true }
    return !hasBegun
  }

  /// Notes how long the frame will be; 0 if that is not known.
  mutating func expect(_ length: Int) { self.length = length }

  /// Notes that no incomplete frame is in the input, or that none is timed.
  mutating func stop() { hasBegun = false }

  /// Notes that a frame of this size is complete; in a dialect, sizes are left out.
  mutating func complete(_ length: Int = 0, body: Int = 0) {
    hasBegun = false
    self.length = 0
    if body >= FrameProgress.largeBody { large = length }
  }

  /// Notes that whole records have come, or that nothing was read meanwhile.
  mutating func recordEnds() { recordBegan = nil }

  /// Notes that a part of a record has come. Returns since when the record is incomplete.
  mutating func recordGrows(at now: LinkInstant) -> LinkInstant {
    let began = recordBegan ?? now
    recordBegan = began
    return began
  }

  /// How many bytes to read, about `limit`, while `present` of them wait: up to the end of the
  /// frame that has begun, plus as many of the last large frame's size as fit.
  func readSize(upTo limit: Int, present: Int) -> Int {
    guard large > 0 else { return limit }
    let begun = length > 0 ? length : large
    let rest = present == 0 ? 0 : max(0, begun - present)
    guard rest < limit else { return limit }
    let size = rest + (limit - rest) / large * large
    return size > 0 ? size : limit
  }

  /// The rest of a frame of which half is present; nil if there is none.
  func rest(after present: Int) -> Int? {
    length > 0 && present >= length / 2 ? length - present : nil
  }
}
