// SPDX-License-Identifier: Apache-2.0

/// Remembers how many long links in a row the network has cut, and how long the next one has to
/// live without requests before it takes them.
struct LinkTrial: Equatable, Sendable {
  /// The number of long links in a row that were cut and never answered.
  private var cuts = 0
  /// The long link that stands the trial.
  private(set) var link: WayMachine.ID?
  /// When the trial is over.
  private(set) var end = LinkInstant.distantFuture

  /// More cuts make no longer trial: it lasts 64 bounds at most.
  private static let mostCuts = 7

  /// Begins a trial if the last link was cut. It lasts one connect bound after the first cut, and
  /// twice as long after each further one, but half of what the link's credential does at most: a
  /// link whose credential ends first would never be used.
  mutating func begin(
    of link: WayMachine.ID, bound: Int64, validity: Int64?, at now: LinkInstant
  ) -> Bool {
    guard cuts > 0 else { return false }
    let length = bound.multipliedReportingOverflow(by: 1 << Int64(cuts - 1))
    self.link = link
    end = now + min(length.overflow ? .max : length.partialValue, (validity ?? .max) / 2)
    return true
  }

  /// Ends a trial; returns the link that stood it.
  @discardableResult
  mutating func finish() -> WayMachine.ID? {
    defer { (link, end) = (nil, .distantFuture) }
    return link
  }

  /// Notes that a link was cut. One that has answered was no victim of its network; of the others,
  /// `isShown` says whether this shows anything. Returns whether it does.
  mutating func wasCut(hasAnswered: Bool, isShown: Bool) -> Bool {
    if hasAnswered { cuts = 0 }
    guard !hasAnswered, isShown else { return false }
    cuts = min(cuts + 1, LinkTrial.mostCuts)
    return true
  }
}
