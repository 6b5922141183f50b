// SPDX-License-Identifier: Apache-2.0

/// Remembers to which servers the network has cut long links, and how long the next link has to
/// live without requests before it takes them.
///
/// Servers are identified by their index in the client's list; nil stands for all alternatives.
struct LinkTrial: Equatable, Sendable {
  /// How long the next long link to each server has to live, in nanoseconds. Empty if no link was
  /// cut since the last link that answered.
  private var lengths: [Int?: Int64] = [:]
  /// The long link that stands a trial; nil if none does.
  private(set) var link: WayMachine.ID?
  /// When the trial's time is over; `distantFuture` without a trial, or while it waits for a pong.
  private(set) var end = LinkInstant.distantFuture

  /// The longest trial, in nanoseconds: ten minutes.
  static let longest: Int64 = 600_000_000_000

  /// Begins a trial if a link was cut, and returns whether it was. It lasts `bound` nanoseconds at
  /// first, and twice as long after each further cut of the same server's links; but it ends before
  /// the credential expires, which is valid for `validity` nanoseconds.
  mutating func begin(
    of link: WayMachine.ID, on server: Int?, bound: Int64, validFor validity: Int64?,
    at now: LinkInstant
  ) -> Bool {
    guard !lengths.isEmpty else { return false }
    let length = lengths[server] ?? min(bound, LinkTrial.longest)
    self.link = link
    end = now + min(length, validity.map { $0 / 4 * 3 } ?? .max)
    return true
  }

  /// If the trial's time is over, returns the link, which now only has to answer a ping.
  mutating func elapsed(to now: LinkInstant) -> WayMachine.ID? {
    guard end <= now else { return nil }
    end = .distantFuture
    return link
  }

  /// Whether a link has lived through its trial, and only has to answer a ping.
  func awaitsPong(of link: WayMachine.ID) -> Bool { self.link == link && end == .distantFuture }

  /// Ends a trial, if there is one; returns its link.
  @discardableResult
  mutating func finish() -> WayMachine.ID? {
    defer { (link, end) = (nil, .distantFuture) }
    return link
  }

  /// Records that the network has cut a link to a server.
  mutating func wasCut(on server: Int?, bound: Int64) {
    let length = lengths[server].map { $0 * 2 } ?? bound
    lengths[server] = min(length, LinkTrial.longest)
  }

  /// Forgets all cuts. A trial that is under way continues.
  mutating func forgetCuts() { lengths = [:] }
}
