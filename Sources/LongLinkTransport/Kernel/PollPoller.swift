// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore

/// A poller that uses poll(2), which every system has. Each wait costs O(watched descriptors).
final class PollPoller: Poller {
  let waker: Waker
  private var watched: [pollfd]
  /// The keys of `watched`, at the same indices; the waker's own is first.
  private var keys: [PollKey]
  private var places: [CInt: Int] = [:]
  private var events: [PollEvent] = []

  init() throws(Errno) {
    waker = try Waker(preferringPipe: true)
    watched = [pollfd(fd: waker.readEnd, events: Int16(POLLIN), revents: 0)]
    keys = [PollKey(rawValue: .max)]
  }

  func add(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno) {
    guard places[descriptor] == nil else { throw Errno(EEXIST) }
    places[descriptor] = watched.count
    watched.append(pollfd(fd: descriptor, events: Self.mask(interest), revents: 0))
    keys.append(key)
  }

  func modify(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno) {
    guard let place = places[descriptor] else { throw Errno(ENOENT) }
    watched[place].events = Self.mask(interest)
    keys[place] = key
  }

  func remove(_ descriptor: CInt) {
    guard let place = places.removeValue(forKey: descriptor) else { return }
    let last = watched.count - 1
    if place != last {
      watched[place] = watched[last]
      keys[place] = keys[last]
      places[watched[place].fd] = place
    }
    watched.removeLast()
    keys.removeLast()
  }

  func wait(until deadline: LinkInstant?) -> Int {
    events.removeAll(keepingCapacity: true)
    let milliseconds = Self.milliseconds(until: deadline)
    let count = unsafe watched.withUnsafeMutableBufferPointer { buffer in
      unsafe poll(buffer.baseAddress, nfds_t(buffer.count), milliseconds)
    }
    guard count > 0 else { return 0 }
    if watched[0].revents != 0 { waker.clear() }
    for place in 1..<watched.count where watched[place].revents != 0 {
      let bits = watched[place].revents
      let failed = bits & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
      var readiness: Readiness = []
      if failed || bits & Int16(POLLIN) != 0 { readiness.insert(.read) }
      if failed || bits & Int16(POLLOUT) != 0 { readiness.insert(.write) }
      events.append(PollEvent(key: keys[place], readiness: readiness))
    }
    return events.count
  }

  func event(at index: Int) -> PollEvent {
    events[index]
  }

  func close() {
    watched.removeAll()
    keys.removeAll()
    places.removeAll()
    events.removeAll()
  }

  /// Rounds up, because a wait that ends early would be repeated.
  private static func milliseconds(until deadline: LinkInstant?) -> CInt {
    guard let deadline, deadline != .distantFuture else { return -1 }
    guard deadline.nanoseconds > 0 else { return 0 }
    let remaining = deadline.nanoseconds - SystemCall.monotonicNanoseconds()
    guard remaining > 0 else { return 0 }
    return CInt(clamping: (remaining - 1) / 1_000_000 + 1)
  }

  private static func mask(_ interest: Readiness) -> Int16 {
    (interest.contains(.read) ? Int16(POLLIN) : 0)
      | (interest.contains(.write) ? Int16(POLLOUT) : 0)
  }
}
