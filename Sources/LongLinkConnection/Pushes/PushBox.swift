@_spi(Containers) internal import LongLinkCore
internal import Synchronization

/// The buffer between the loop, which puts pushes in, and the one task that takes them out.
final class PushBox: Sendable {
  /// What there is to take.
  enum Next: Sendable {
    case push(Push)
    case end
    /// More came than the buffer may hold.
    case overflow(LongLinkError)
  }

  /// What became of a push.
  enum Offered {
    case taken
    /// So many were dropped, this one or older ones.
    case dropped(UInt64)
    /// It did not fit, and the sequence ends with that.
    case overflowed
  }

  private struct State {
    var pushes = Queue<Push>()
    var bytes = 0
    var dropped: UInt64 = 0
    var waiter: Waiter<Next>?
    /// What comes behind the last push, once nothing more is added.
    var ending: Next?
  }

  private let overflow: PushOverflow
  private let maxCount: Int
  private let maxBytes: Int
  private let state = Mutex(State())

  init<Failure>(_ buffer: PushBuffer<Failure>) {
    overflow = buffer.overflow
    maxCount = buffer.count
    maxBytes = buffer.bytes
  }

  var counts: (dropped: UInt64, buffered: Int) {
    state.withLock { ($0.dropped, $0.pushes.count) }
  }

  /// Hands a push to whoever waits, or buffers it as far as there is room.
  func offer(_ push: Push) -> Offered {
    let (waiter, offered) = state.withLock { state -> (Waiter<Next>?, Offered) in
      if state.ending != nil { return (nil, .dropped(0)) }
      if let waiter = state.waiter.take() { return (waiter, .taken) }
      return (nil, keep(push, &state))
    }
    waiter?(.push(push))
    return offered
  }

  private func keep(_ push: Push, _ state: inout State) -> Offered {
    var made: UInt64 = 0
    while !hasRoom(for: push, state) {
      switch overflow {
      case .dropOldest:
        guard let oldest = state.pushes.popFirst() else { break }
        state.bytes -= oldest.body.count
        made += 1
      case .dropNewest:
        state.dropped += 1
        return .dropped(1)
      case .close:
        state.dropped += 1
        let buffered = "\(state.pushes.count) pushes of \(state.bytes) bytes were buffered"
        state.ending = .overflow(
          LongLinkError(
            .overloaded, doing: "take pushes", detail: "\(buffered), and one more came"))
        return .overflowed
      }
    }
    state.pushes.append(push)
    state.bytes += push.body.count
    state.dropped += made
    return made > 0 ? .dropped(made) : .taken
  }

  private func hasRoom(for push: Push, _ state: borrowing State) -> Bool {
    if state.pushes.isEmpty { return true }
    return state.pushes.count < maxCount && state.bytes + push.body.count <= maxBytes
  }

  /// Adds nothing more; what is buffered can still be taken.
  func finish() {
    let waiter = state.withLock { state -> Waiter<Next>? in
      if state.ending == nil { state.ending = .end }
      return state.waiter.take()
    }
    waiter?(.end)
  }

  /// Takes a push, or waits for one. One task at a time.
  func next() async -> Next {
    if Task.isCancelled { return .end }
    if let next = state.withLock({ PushBox.take(&$0) }) { return next }
    return await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Next>) in
        let next = state.withLock { state -> Next? in
          if let next = PushBox.take(&state) { return next }
          precondition(state.waiter == nil, "one task at a time may await the pushes")
          state.waiter = waiter
          return nil
        }
        if let next {
          waiter(next)
        } else if Task.isCancelled {
          // The handler may have run before the waiter stood there.
          stopWaiting()
        }
      }
    } onCancel: {
      stopWaiting()
    }
  }

  private func stopWaiting() {
    state.withLock { $0.waiter.take() }?(.end)
  }

  private static func take(_ state: inout State) -> Next? {
    if let push = state.pushes.popFirst() {
      state.bytes -= push.body.count
      return .push(push)
    }
    // A sequence throws once and has ended then.
    if case .overflow = state.ending {
      defer { state.ending = .end }
      return state.ending
    }
    return state.ending
  }
}
