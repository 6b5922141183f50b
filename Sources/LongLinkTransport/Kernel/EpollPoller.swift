#if os(Linux)
internal import CLongLinkPOSIX

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Waits with epoll(7), level-triggered.
@safe final class EpollPoller: Poller {
  let waker: Waker
  private var descriptor: CInt
  private var events: UnsafeMutableBufferPointer<epoll_event>

  /// No slot table hands out this key.
  private static let wakeKey = UInt64.max
  private static let mostEvents = 4096

  init() throws(Errno) {
    waker = try Waker()
    descriptor = epoll_create1(CInt(cll_epoll_cloexec))
    guard descriptor >= 0 else { throw Errno(errno) }
    unsafe events = .allocate(capacity: 64)
    unsafe events.initialize(repeating: epoll_event())
    do throws(Errno) {
      try control(EPOLL_CTL_ADD, waker.readEnd, EPOLLIN.rawValue | EPOLLET.rawValue, Self.wakeKey)
    } catch {
      close()
      throw error
    }
  }

  deinit {
    close()
    unsafe events.deallocate()
  }

  func add(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno) {
    try control(EPOLL_CTL_ADD, descriptor, Self.mask(interest), key.rawValue)
  }

  func modify(_ descriptor: CInt, key: PollKey, interest: Readiness) throws(Errno) {
    try control(EPOLL_CTL_MOD, descriptor, Self.mask(interest), key.rawValue)
  }

  func remove(_ descriptor: CInt) {
    // It fails only for one that is not watched, which is what is wanted.
    try? control(EPOLL_CTL_DEL, descriptor, 0, 0)
  }

  func wait(milliseconds: CInt) -> Int {
    if unsafe lastCount == events.count, lastCount < Self.mostEvents { grow() }
    // An interrupted wait is one without events: the loop looks at the time and comes back.
    let count = unsafe epoll_wait(descriptor, events.baseAddress, CInt(events.count), milliseconds)
    lastCount = max(0, Int(count))
    var kept = 0
    for index in 0..<lastCount {
      // The event counter is never read: each wake-up is an edge of its own.
      if unsafe cll_epoll_event_key(&events[index]) != Self.wakeKey {
        if kept != index { unsafe events[kept] = events[index] }
        kept += 1
      }
    }
    return kept
  }

  func event(at index: Int) -> PollEvent {
    let bits = unsafe events[index].events
    var readiness = Readiness.none
    // The kernel reports errors and hang-ups unasked; whoever reads or writes then finds them.
    let failed = bits & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    if failed || bits & EPOLLIN.rawValue != 0 { readiness.insert(.read) }
    if failed || bits & EPOLLOUT.rawValue != 0 { readiness.insert(.write) }
    let key = unsafe cll_epoll_event_key(&events[index])
    return PollEvent(key: PollKey(rawValue: key), readiness: readiness)
  }

  func close() {
    guard descriptor >= 0 else { return }
    SystemCall.close(descriptor)
    descriptor = -1
  }

  private var lastCount = 0

  /// A full array says that there were more events than fitted.
  private func grow() {
    let larger = unsafe UnsafeMutableBufferPointer<epoll_event>.allocate(
      capacity: events.count * 2
    )
    unsafe larger.initialize(repeating: epoll_event())
    unsafe events.deallocate()
    unsafe events = larger
  }

  private func control(
    _ operation: CInt,
    _ target: CInt,
    _ mask: UInt32,
    _ key: UInt64
  ) throws(Errno) {
    var event = unsafe epoll_event()
    unsafe cll_epoll_event_set(&event, mask, key)
    guard unsafe epoll_ctl(descriptor, operation, target, &event) == 0 else { throw Errno(errno) }
  }

  private static func mask(_ interest: Readiness) -> UInt32 {
    (interest.contains(.read) ? EPOLLIN.rawValue : 0)
      | (interest.contains(.write) ? EPOLLOUT.rawValue : 0)
  }
}
#endif
