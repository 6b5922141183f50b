// SPDX-License-Identifier: Apache-2.0

/// Remembers which servers' long links the network has cut, and how long the next one has to live
/// without requests before it takes them.
///
/// Servers are named by their index in the client's list; nil is any other that a draining one has
/// named.
struct LinkTrial: Equatable, Sendable {
  /// How long the next long link to a server has to live. Empty unless one was cut since the last
  /// that answered.
  private var lengths: [Int?: Int64] = [:]
  /// The long link that stands the trial.
  private(set) var link: WayMachine.ID?
  /// When the time of the trial is over.
  private(set) var end = LinkInstant.distantFuture

  /// The longest trial: ten minutes.
  static let longest: Int64 = 600_000_000_000

  /// Begins a trial if a link was cut. It lasts one connect bound, and twice as long for each
  /// further cut of the same server's links; but never so long that the credential, which is valid
  /// for `validity` nanoseconds, expires meanwhile.
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

  /// Ends the time of the trial if it is over; returns the link, which has to answer a ping now.
  mutating func elapsed(to now: LinkInstant) -> WayMachine.ID? {
    guard end <= now else { return nil }
    end = .distantFuture
    return link
  }

  /// Whether a link only has to answer a ping.
  func awaitsPong(of link: WayMachine.ID) -> Bool { self.link == link && end == .distantFuture }

  /// Ends a trial; returns the link that stood it.
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

  /// Forgets all cuts. A link that stands a trial goes on with it.
  mutating func forgetCuts() { lengths = [:] }
}
