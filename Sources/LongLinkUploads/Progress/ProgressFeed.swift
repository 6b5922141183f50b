// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// Reports an upload's progress to a callback and to sequences, at most 10 times a second. It lives
/// on a loop.
final class ProgressFeed: TimerHandler {
  /// The least time between two reports, in nanoseconds. The last report does not wait; with it,
  /// there are at most 10 in any second.
  static let interval: Int64 = 112_000_000
  /// The time between reports while no byte moves, in nanoseconds: the rate falls meanwhile.
  private static let idle: Int64 = 1_000_000_000

  private let loop: EventLoop
  private let hub: ProgressHub
  private var meter = ProgressMeter()
  private var lastTold: LinkInstant?
  private var timer = LoopTimer.none
  private var deadline: LinkInstant?
  private var isOver = false

  init(_ hub: ProgressHub, on loop: EventLoop) {
    self.loop = loop
    self.hub = hub
  }

  /// Changes the numbers, and reports them now or when the next report is due.
  func change(_ body: (inout ProgressMeter) -> Void) {
    guard !isOver else { return }
    body(&meter)
    let due = lastTold.map { $0 + ProgressFeed.interval } ?? loop.now
    if due <= loop.now { tell() } else { setTimer(at: due) }
  }

  /// Reports the last numbers, if they were not yet reported, and ends.
  func finish() {
    guard !isOver else { return }
    isOver = true
    loop.cancel(timer)
    if hub.latest != meter.progress || lastTold == nil { hub.tell(meter.measure(at: loop.now)) }
    hub.finish()
  }

  func timerFired(token: UInt64) {
    deadline = nil
    if !isOver { tell() }
  }

  private func tell() {
    lastTold = loop.now
    hub.tell(meter.measure(at: loop.now))
    setTimer(at: loop.now + ProgressFeed.idle)
  }

  private func setTimer(at instant: LinkInstant) {
    if let deadline, deadline <= instant { return }
    loop.cancel(timer)
    deadline = instant
    timer = loop.schedule(at: instant, self, token: 0)
  }
}

/// The receivers of an upload's progress.
final class ProgressHub: Sendable {
  private struct State {
    var latest: UploadProgress?
    var isOver = false
    var receivers: [UInt64: AsyncStream<UploadProgress>.Continuation] = [:]
    var next: UInt64 = 0

    /// In the order in which they have subscribed.
    var inOrder: [AsyncStream<UploadProgress>.Continuation] {
      receivers.sorted { $0.key < $1.key }.map(\.value)
    }
  }

  private let state = Mutex(State())
  private let callback: (@Sendable (UploadProgress) -> Void)?

  init(_ callback: (@Sendable (UploadProgress) -> Void)?) {
    self.callback = callback
  }

  var latest: UploadProgress? { state.withLock(of: self) { $0.latest } }

  func tell(_ progress: UploadProgress) {
    // Under the lock, so that a new subscriber never gets an older value after a newer one.
    state.withLock(of: self) { state in
      state.latest = progress
      for receiver in state.inOrder { receiver.yield(progress) }
    }
    callback?(progress)
  }

  func finish() {
    let receivers = state.withLock(of: self) { state in
      state.isOver = true
      defer { state.receivers = [:] }
      return state.inOrder
    }
    for receiver in receivers { receiver.finish() }
  }

  private func remove(_ number: UInt64) {
    state.withLock(of: self) { $0.receivers[number] = nil }
  }

  /// Returns a sequence that keeps only the latest value for a slow reader.
  func subscribe() -> AsyncStream<UploadProgress> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: UploadProgress.self, bufferingPolicy: .bufferingNewest(1))
    let (isOver, number) = state.withLock(of: self) { state in
      state.next += 1
      if !state.isOver { state.receivers[state.next] = continuation }
      if let latest = state.latest { continuation.yield(latest) }
      return (state.isOver, state.next)
    }
    if isOver { continuation.finish() }
    continuation.onTermination = { [weak self] _ in
      self?.remove(number)
    }
    return stream
  }
}
