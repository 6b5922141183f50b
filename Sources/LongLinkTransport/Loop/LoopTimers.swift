// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The timers of one loop: their handlers, and a timing wheel.
struct LoopTimers: ~Copyable {
  struct Entry {
    let handler: any TimerHandler
    let token: UInt64
    var place: TimingWheel.Handle
  }

  private var entries = SlotTable<Entry>()
  private var wheel: TimingWheel
  private let anchor = Anchor()
  /// The cached `wheel.nextDeadline`, and whether it is current.
  private var known: LinkInstant?
  private var isKnown = false

  init(now: LinkInstant) {
    wheel = TimingWheel(now: now)
  }

  var nextDeadline: LinkInstant? {
    mutating get {
      if !isKnown {
        known = wheel.nextDeadline
        isKnown = true
      }
      return known
    }
  }

  mutating func insert(_ handler: any TimerHandler, token: UInt64, at deadline: LinkInstant)
    -> LoopTimer
  {
    let key = entries.insert(Entry(handler: handler, token: token, place: .none))
    entries[key]?.place = wheel.insert(key, at: deadline)
    isKnown = false
    return LoopTimer(key: key)
  }

  /// Adds a timer without a deadline, which the caller removes to fire it.
  mutating func insert(_ handler: any TimerHandler, token: UInt64) -> LoopTimer {
    LoopTimer(key: entries.insert(Entry(handler: handler, token: token, place: .none)))
  }

  /// Removes a timer; nil if it has fired or was removed before.
  @discardableResult
  mutating func remove(_ timer: LoopTimer) -> Entry? {
    guard let entry = entries.remove(timer.key) else { return nil }
    wheel.remove(entry.place)
    isKnown = false
    return entry
  }

  var handlers: [any TimerHandler] { entries.all.map(\.handler) }

  mutating func advance(to now: LinkInstant) {
    wheel.advance(to: now)
    isKnown = false
  }

  /// Removes and returns the next due timer.
  mutating func popExpired() -> Entry? {
    isKnown = false
    while let key = wheel.popExpired() {
      if let entry = entries.remove(key) { return entry }
    }
    return nil
  }

  /// Removes the deadlines of all timers, and returns the timers in order.
  mutating func expireAll() -> [LoopTimer] {
    wheel.expireAll()
    isKnown = false
    var timers: [LoopTimer] = []
    while let key = wheel.popExpired() { timers.append(LoopTimer(key: key)) }
    return timers
  }
}
