// SPDX-License-Identifier: Apache-2.0

extension RequestTable {
  /// The time of the next call of `elapsed(to:)`; nil if there is nothing to wait for.
  package var deadline: LinkInstant? {
    let first = min(young.earliest, wheel.nextDeadline ?? .distantFuture)
    return first == .distantFuture ? nil : first
  }

  /// Lets a request expire at its deadline.
  @inlinable @inline(__always)
  mutating func expire(_ id: RequestID, _ deadline: LinkInstant, at now: LinkInstant) {
    if young.isFull(beside: entries.count) { sortDeadlines(upTo: now) }
    young.append(id, deadline)
  }

  /// Moves the deadlines of open requests into the wheel.
  @inlinable mutating func sortDeadlines(upTo now: LinkInstant) {
    startTimers(at: min(now, young.earliest))
    for index in 0..<young.count {
      let (id, deadline) = young[index]
      guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number,
        entries[slot: slot].timer == .none
      else { continue }
      entries[slot: slot].timer = insertTimer(id.serial, at: deadline)
    }
    young.removeAll()
  }

  /// Starts an empty wheel early enough that overdue deadlines keep their order.
  @usableFromInline mutating func startTimers(at instant: LinkInstant) {
    if wheel.isEmpty { wheel.advance(to: instant) }
  }

  @usableFromInline mutating func insertTimer(
    _ serial: UInt32, at deadline: LinkInstant
  ) -> TimingWheel.Handle {
    wheel.insert(UInt64(serial), at: deadline)
  }

  @usableFromInline mutating func removeTimer(_ timer: TimingWheel.Handle) {
    wheel.remove(timer)
  }

  /// Ends and returns a request whose deadline has passed.
  package mutating func nextExpired() -> (id: RequestID, entry: Entry)? {
    while let key = wheel.popExpired() {
      let serial = UInt32(truncatingIfNeeded: key)
      guard key < Self.resumeKey else {
        resume(serial)
        continue
      }
      guard let slot = entries.slot(of: serial) else { continue }
      let entry = remove(serial, at: slot)
      return (RequestID(serial: serial, number: entry.number), entry)
    }
    return nil
  }

  /// Frees memory while there are no requests.
  package mutating func releaseStorage() {
    entries.releaseStorage(over: 16)
    waits.releaseStorage(over: 16)
    if entries.isEmpty { young.releaseStorage() }
  }

  /// Advances the clock; expired requests come from `nextExpired()`.
  package mutating func elapsed(to now: LinkInstant) {
    if young.earliest <= now { sortDeadlines(upTo: now) }
    wheel.advance(to: now)
  }
}
