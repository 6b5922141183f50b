// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The timers of one loop: who is told, over a wheel that knows when.
struct LoopTimers: ~Copyable {
  struct Entry {
    let handler: any TimerHandler
    let token: UInt64
    var place: TimingWheel.Handle
  }

  private var entries = SlotTable<Entry>()
  private var wheel: TimingWheel
  private let anchor = Anchor()
  /// What the wheel said last of its next deadline, and whether it would say the same again.
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

  /// Adds a timer that is due whatever the time: the caller takes it out by its name.
  mutating func insert(_ handler: any TimerHandler, token: UInt64) -> LoopTimer {
    LoopTimer(key: entries.insert(Entry(handler: handler, token: token, place: .none)))
  }

  /// Takes a timer out; nil for one that has fired or was taken out before.
  @discardableResult
  mutating func remove(_ timer: LoopTimer) -> Entry? {
    guard let entry = entries.remove(timer.key) else { return nil }
    wheel.remove(entry.place)
    isKnown = false
    return entry
  }

  mutating func advance(to now: LinkInstant) {
    wheel.advance(to: now)
    isKnown = false
  }

  /// Takes the next timer that is due out.
  mutating func popExpired() -> Entry? {
    isKnown = false
    while let key = wheel.popExpired() {
      if let entry = entries.remove(key) { return entry }
    }
    return nil
  }

  /// Makes every timer one that is due whatever the time, and returns them in their order.
  mutating func expireAll() -> [LoopTimer] {
    wheel.expireAll()
    isKnown = false
    var timers: [LoopTimer] = []
    while let key = wheel.popExpired() { timers.append(LoopTimer(key: key)) }
    return timers
  }
}
