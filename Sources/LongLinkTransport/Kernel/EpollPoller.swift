// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CLongLinkSystem
internal import LongLinkCLibrary
internal import LongLinkCore

/// A poller that uses epoll(7), level-triggered.
///
/// A timer of the poller (timerfd_create(2)) ends a wait at its deadline. With a timeout argument,
/// the kernel would set up and remove a timer for each wait; this one is set only if it must expire
/// earlier than before.
@safe final class EpollPoller: Poller {
  let waker: Waker
  private var descriptor: CInt
  private let timer: CInt
  /// When the timer expires; `.distantFuture` if it is not set.
  private var timerDeadline = LinkInstant.distantFuture
  private var events: UnsafeMutableBufferPointer<epoll_event>

  // Keys that no slot table produces.
  private static let wakeKey = UInt64.max
  private static let timerKey = UInt64.max - 1
  private static let mostEvents = 4096

  init() throws(Errno) {
    waker = try Waker()
    timer = try SystemCall.timer()
    descriptor = epoll_create1(CInt(cll_epoll_cloexec))
    guard descriptor >= 0 else {
      let code = errno
      SystemCall.close(timer)
      throw Errno(code)
    }
    unsafe events = .allocate(capacity: 64)
    unsafe events.initialize(repeating: epoll_event())
    do throws(Errno) {
      let edges = EPOLLIN.rawValue | EPOLLET.rawValue
      try control(EPOLL_CTL_ADD, waker.readEnd, edges, Self.wakeKey)
      try control(EPOLL_CTL_ADD, timer, edges, Self.timerKey)
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
    // It fails only if the descriptor is not watched, which is the goal.
    try? control(EPOLL_CTL_DEL, descriptor, 0, 0)
  }

  func wait(until deadline: LinkInstant?) -> Int {
    if unsafe lastCount == events.count, lastCount < Self.mostEvents { grow() }
    let limit = prepareToWait(until: deadline ?? .distantFuture)
    // An interrupted wait returns no events: the loop checks the time and waits again.
    let count = unsafe epoll_wait(descriptor, events.baseAddress, CInt(events.count), limit)
    lastCount = max(0, Int(count))
    var kept = 0
    for index in 0..<lastCount {
      // The event counter and the timer are edge-triggered, so that they need not be read.
      switch unsafe cll_epoll_event_key(&events[index]) {
      case Self.wakeKey:
        break
      case Self.timerKey:
        timerDeadline = .distantFuture
      default:
        if kept != index { unsafe events[kept] = events[index] }
        kept += 1
      }
    }
    return kept
  }

  /// Sets the timer for `deadline` if necessary, and returns the timeout argument: -1 for none, or
  /// 0 for not waiting at all.
  private func prepareToWait(until deadline: LinkInstant) -> CInt {
    guard deadline.nanoseconds > 0 else { return 0 }
    if deadline < timerDeadline {
      timerDeadline = deadline
      SystemCall.setTimer(timer, at: deadline.nanoseconds)
    }
    return -1
  }

  func event(at index: Int) -> PollEvent {
    let bits = unsafe events[index].events
    var readiness = Readiness.none
    // The kernel always reports errors and hang-ups; the next read or write finds them.
    let failed = bits & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    if failed || bits & EPOLLIN.rawValue != 0 { readiness.insert(.read) }
    if failed || bits & EPOLLOUT.rawValue != 0 { readiness.insert(.write) }
    let key = unsafe cll_epoll_event_key(&events[index])
    return PollEvent(key: PollKey(rawValue: key), readiness: readiness)
  }

  func close() {
    guard descriptor >= 0 else { return }
    SystemCall.close(descriptor)
    SystemCall.close(timer)
    descriptor = -1
  }

  private var lastCount = 0

  /// Enlarges the array after it was full, because there may have been more events.
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
