// SPDX-License-Identifier: Apache-2.0

/// The servers of a client, with the state of each.
package struct ServerList: Equatable, Sendable {
  package struct Entry: Equatable, Sendable {
    /// The priority number. Servers with lower numbers are preferred.
    package let priority: Int
    /// The weight of this server among those of its priority.
    package let weight: Int
    /// The number of failures in a row.
    fileprivate(set) var streak = 0
    /// When the server will have cooled down.
    fileprivate(set) var readyAt = LinkInstant.distantPast
    /// Until when the server asks clients to stay away.
    fileprivate(set) var awayUntil = LinkInstant.distantPast
    /// Whether the server was tried in this outage.
    fileprivate(set) var isTried = false

    package init(priority: Int, weight: Int) {
      self.priority = priority
      self.weight = weight
    }

    /// Whether the server has cooled down and does not ask clients to stay away.
    fileprivate func isReady(at now: LinkInstant) -> Bool { readyAt <= now && awayUntil <= now }
  }

  package private(set) var entries: [Entry]
  private let coolDown: Int64
  private let longestCoolDown: Int64

  package init(_ entries: [Entry], policy: ReconnectPolicy) {
    precondition(!entries.isEmpty)
    self.entries = entries
    coolDown = policy.coolDown.clampedNanoseconds
    longestCoolDown = policy.longestCoolDown.clampedNanoseconds
  }

  /// Returns the server for the next round. Calls `bits` only if there is a choice.
  package func choice(at now: LinkInstant, bits: () -> UInt64) -> Int {
    let ready = indices { $0.isReady(at: now) }
    let untried = ready.filter { !entries[$0].isTried }
    if let best = draw(among: untried.isEmpty ? ready : untried, bits: bits) { return best }
    // No server is ready. Choose the one that stops asking clients to stay away first; among
    // equals, the one that cools down first, then the one of better priority.
    return entries.indices.min { first, second in
      let (first, second) = (entries[first], entries[second])
      return (max(now, first.awayUntil), first.readyAt, first.priority)
        < (max(now, second.awayUntil), second.readyAt, second.priority)
    }!
  }

  package func isReady(_ index: Int, at now: LinkInstant) -> Bool {
    entries[index].isReady(at: now)
  }

  /// When the first server stops asking clients to stay away.
  package var mayAskAt: LinkInstant {
    entries.reduce(LinkInstant.distantFuture) { min($0, $1.awayUntil) }
  }

  /// Returns a ready server other than the one at `index`; nil if there is none.
  package func other(than index: Int?, at now: LinkInstant, bits: () -> UInt64) -> Int? {
    let others = indices { $0.isReady(at: now) }.filter { $0 != index }
    return draw(among: others, bits: bits)
  }

  /// Returns a ready server of better priority than the one at `index` (any server if that is nil).
  package func better(than index: Int?, at now: LinkInstant, bits: () -> UInt64) -> Int? {
    let priority = index.map { entries[$0].priority }
    let better = indices { entry in
      entry.isReady(at: now) && priority.map { entry.priority < $0 } ?? true
    }
    return draw(among: better, bits: bits)
  }

  /// Whether some server, ready or not, has better priority than the one at `index`.
  package func hasBetter(than index: Int?) -> Bool {
    guard let index else { return true }
    return entries.contains { $0.priority < entries[index].priority }
  }

  /// Whether a ready server has not been tried in this outage.
  package func hasUntried(at now: LinkInstant) -> Bool {
    entries.contains { $0.isReady(at: now) && !$0.isTried }
  }

  private func indices(where matches: (Entry) -> Bool) -> [Int] {
    entries.indices.filter { matches(entries[$0]) }
  }

  /// Draws one of the candidates with the lowest priority number, by weight.
  private func draw(among candidates: [Int], bits: () -> UInt64) -> Int? {
    guard let least = candidates.map({ entries[$0].priority }).min() else { return nil }
    let equals = candidates.filter { entries[$0].priority == least }
    guard equals.count > 1 else { return equals[0] }
    let total = equals.reduce(UInt64(0)) { $0 + UInt64(entries[$1].weight) }
    var point = total.multipliedFullWidth(by: bits()).high
    for index in equals {
      let weight = UInt64(entries[index].weight)
      if point < weight { return index }
      point -= weight
    }
    return equals[equals.count - 1]
  }
}

// MARK: - Updates

extension ServerList {
  /// Records that a round with a server begins; returns whether it is the first in this outage.
  @discardableResult
  package mutating func tried(_ index: Int) -> Bool {
    defer { entries[index].isTried = true }
    return !entries[index].isTried
  }

  /// Records that a round did not reach its server, though that is not the server's fault.
  package mutating func untried(_ index: Int) {
    entries[index].isTried = false
  }

  /// Forgets which servers were tried, because a new outage begins.
  package mutating func forgetTries() {
    for index in entries.indices { entries[index].isTried = false }
  }

  /// Makes a server that failed or drains cool down, longer each time.
  package mutating func failed(_ index: Int, at now: LinkInstant) {
    entries[index].streak += 1
    let doublings = min(entries[index].streak - 1, 62)
    let (scaled, overflow) = coolDown.multipliedReportingOverflow(by: 1 << doublings)
    entries[index].readyAt = now + (overflow ? longestCoolDown : min(scaled, longestCoolDown))
  }

  /// Records until when a server asks clients to stay away from it.
  package mutating func avoid(_ index: Int, until time: LinkInstant) {
    entries[index].awayUntil = max(entries[index].awayUntil, time)
  }

  /// Records that a server works: its failures and its hint are forgotten.
  package mutating func succeeded(_ index: Int) {
    entries[index].streak = 0
    entries[index].readyAt = LinkInstant.distantPast
    entries[index].awayUntil = LinkInstant.distantPast
  }

  /// Replaces the servers. For each of them, `kept` has its index in the old list, whose state it
  /// keeps; nil if it is new.
  package mutating func replace(with entries: [Entry], kept: [Int?]) {
    precondition(!entries.isEmpty && kept.count == entries.count)
    let old = self.entries
    self.entries = entries
    for (index, place) in kept.enumerated() {
      guard let place else { continue }
      self.entries[index].streak = old[place].streak
      self.entries[index].readyAt = old[place].readyAt
      self.entries[index].awayUntil = old[place].awayUntil
      self.entries[index].isTried = old[place].isTried
    }
  }
}
