// SPDX-License-Identifier: Apache-2.0

/// The state of a waiting request.
@usableFromInline struct RequestWait: Equatable, Sendable {
  let terms: WaitTerms
  /// The request's handle in a heap; nil until it may be sent.
  var handle: UInt32?
  /// The timer that fires when the request may be sent.
  var timer = TimingWheel.Handle.none
}

extension RequestTable {
  /// Distinguishes the wheel's keys of delayed requests from those of deadlines.
  static var resumeKey: UInt64 { 1 << 32 }

  /// The number of requests that wait for a link, for room on it, or for their time.
  @inlinable package var waitingCount: Int { waits.count }

  /// Queues a request.
  package mutating func wait(_ id: RequestID, _ terms: WaitTerms) {
    guard let entry = entry(id), entry.link == 0, !waits.contains(id.serial) else { return }
    let handle = entry.isOrdered ? lane.waiting.insert(id) : insertReady(id, terms)
    waits.insert(RequestWait(terms: terms, handle: handle), for: id.serial)
    waitingBytes += terms.bytes
  }

  /// Queues a request that may not be sent before `time`. Ordered requests wait behind it.
  package mutating func wait(
    _ id: RequestID, _ terms: WaitTerms, until time: LinkInstant, at now: LinkInstant
  ) {
    guard let entry = entry(id), entry.link == 0, !waits.contains(id.serial) else { return }
    if wheel.isEmpty { wheel.advance(to: now) }
    var wait = RequestWait(terms: terms, handle: entry.isOrdered ? lane.waiting.insert(id) : nil)
    wait.timer = wheel.insert(Self.resumeKey | UInt64(id.serial), at: time)
    waits.insert(wait, for: id.serial)
    waitingBytes += terms.bytes
  }

  /// Lets a delayed request be sent, because its time has come.
  mutating func resume(_ serial: UInt32) {
    guard var wait = waits[serial], let entry = entries[serial] else { return }
    wait.timer = .none
    if wait.handle == nil {
      wait.handle = insertReady(RequestID(serial: serial, number: entry.number), wait.terms)
    }
    waits[serial] = wait
  }

  /// Whether a request may not be sent yet.
  package func isDelayed(_ id: RequestID) -> Bool {
    entry(id) != nil && waits[id.serial].map { $0.timer != .none } ?? false
  }

  /// Lets a delayed request be sent now, before its time.
  package mutating func endDelay(of id: RequestID) {
    guard isDelayed(id), let timer = waits[id.serial]?.timer else { return }
    wheel.remove(timer)
    resume(id.serial)
  }

  private mutating func insertReady(_ id: RequestID, _ terms: WaitTerms) -> UInt32 {
    let position = QueuePosition(id, terms)
    return terms.isLarge ? readyLarge.insert(position) : ready.insert(position)
  }

  @usableFromInline mutating func stopWaiting(_ serial: UInt32, isOrdered: Bool) {
    guard let wait = waits.remove(serial) else { return }
    waitingBytes -= wait.terms.bytes
    if wait.timer != .none { wheel.remove(wait.timer) }
    guard let handle = wait.handle else { return }
    if isOrdered {
      lane.waiting.remove(handle)
    } else if wait.terms.isLarge {
      readyLarge.remove(handle)
    } else {
      ready.remove(handle)
    }
  }

  /// Whether a waiting request may go to a link now; `takesLarge` says whether it takes large
  /// bodies.
  package func hasNext(on link: UInt32, takesLarge: Bool = true) -> Bool {
    !ready.isEmpty || takesLarge && !readyLarge.isEmpty
      || lanePosition(on: link, takesLarge: takesLarge) != nil
  }

  /// The number of waiting requests that could each go to a link of its own now.
  package var readyCount: Int {
    ready.count + readyLarge.count + (lanePosition(on: 0, takesLarge: true) == nil ? 0 : 1)
  }

  /// Whether a new request may go to a link before all waiting ones.
  @inlinable @inline(__always)
  package func isNext(
    _ id: RequestID, isOrdered: Bool, on link: UInt32, takesLarge: Bool = true
  ) -> Bool {
    if waits.isEmpty, !isOrdered { return true }
    return isNextOfMany(isOrdered: isOrdered, on: link, takesLarge: takesLarge)
  }

  @usableFromInline func isNextOfMany(isOrdered: Bool, on link: UInt32, takesLarge: Bool) -> Bool {
    !hasNext(on: link, takesLarge: takesLarge)
      && (!isOrdered || lane.waiting.isEmpty && lane.admits(link))
  }

  /// The first ordered request, if it may go to a link now.
  private func lanePosition(on link: UInt32, takesLarge: Bool) -> QueuePosition? {
    guard let id = lane.waiting.first, lane.admits(link), let wait = waits[id.serial],
      wait.timer == .none, takesLarge || !wait.terms.isLarge
    else { return nil }
    return QueuePosition(id, wait.terms)
  }

  /// The most urgent waiting request that may go to a link.
  package func firstWaiting(on link: UInt32, takesLarge: Bool = true) -> RequestID? {
    let positions = [
      ready.first, takesLarge ? readyLarge.first : nil,
      lanePosition(on: link, takesLarge: takesLarge),
    ]
    return positions.compactMap { $0 }.min()?.id
  }

  /// Takes the most urgent waiting request that may go to a link.
  package mutating func nextWaiting(on link: UInt32, takesLarge: Bool = true) -> RequestID? {
    guard let id = firstWaiting(on: link, takesLarge: takesLarge), let entry = entry(id) else {
      return nil
    }
    stopWaiting(id.serial, isOrdered: entry.isOrdered)
    return id
  }

  /// The waiting requests that match, in the order of their creation.
  package func waitingRequests(
    where matches: (Entry) -> Bool = { _ in true }
  ) -> [(id: RequestID, entry: Entry)] {
    var found: [(id: RequestID, entry: Entry)] = []
    for serial in waits.keys {
      guard let entry = entries[serial], matches(entry) else { continue }
      found.append((RequestID(serial: serial, number: entry.number), entry))
    }
    found.sort { $0.id < $1.id }
    return found
  }
}
