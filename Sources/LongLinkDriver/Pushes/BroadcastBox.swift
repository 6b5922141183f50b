// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// An element for any number of subscribers, each with its own buffer.
package protocol Broadcastable: Sendable {
  /// The bytes that a buffer counts for the element.
  var bufferedBytes: Int { get }
  /// The plural noun in error texts.
  static var plural: String { get }
}

/// One subscriber's buffer between the loop, which adds elements, and the task that takes them.
package final class BroadcastBox<Element: Broadcastable>: Sendable {
  /// The result of taking an element.
  package enum Next: Sendable {
    case element(Element)
    case end
    /// The buffer overflowed.
    case overflow(LongLinkError)
  }

  /// The result of offering an element.
  enum Offered {
    case taken
    /// The number of dropped elements: this one or older ones.
    case dropped(UInt64)
    /// The element did not fit, which ends the sequence.
    case overflowed
  }

  private struct State {
    var elements = Queue<Element>()
    var bytes = 0
    var dropped: UInt64 = 0
    var waiter: Waiter<Next>?
    /// What follows the last buffered element; nil while elements may still be added.
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

  package var counts: (dropped: UInt64, buffered: Int) {
    state.withLock { ($0.dropped, $0.elements.count) }
  }

  /// Hands an element to the waiting task, or buffers it.
  func offer(_ element: Element) -> Offered {
    let (waiter, offered) = state.withLock { state -> (Waiter<Next>?, Offered) in
      if state.ending != nil { return (nil, .dropped(0)) }
      if let waiter = state.waiter.take() { return (waiter, .taken) }
      return (nil, keep(element, &state))
    }
    waiter?(.element(element))
    return offered
  }

  private func keep(_ element: Element, _ state: inout State) -> Offered {
    var made: UInt64 = 0
    while !hasRoom(for: element, state) {
      switch overflow {
      case .dropOldest:
        guard let oldest = state.elements.popFirst() else { break }
        state.bytes -= oldest.bufferedBytes
        made += 1
      case .dropNewest:
        state.dropped += 1
        return .dropped(1)
      case .close:
        state.dropped += 1
        let kind = Element.plural
        let buffered = "\(state.elements.count) \(kind) (\(state.bytes) bytes)"
        state.ending = .overflow(
          LongLinkError(
            .overloaded, doing: "take \(kind)", detail: "the buffer is full with \(buffered)"))
        return .overflowed
      }
    }
    state.elements.append(element)
    state.bytes += element.bufferedBytes
    state.dropped += made
    return made > 0 ? .dropped(made) : .taken
  }

  private func hasRoom(for element: Element, _ state: State) -> Bool {
    if state.elements.isEmpty { return true }
    return state.elements.count < maxCount && state.bytes + element.bufferedBytes <= maxBytes
  }

  /// Ends the sequence after the buffered elements.
  func finish() {
    let waiter = state.withLock { state -> Waiter<Next>? in
      if state.ending == nil { state.ending = .end }
      return state.waiter.take()
    }
    waiter?(.end)
  }

  /// Takes an element, or waits for one; for one task at a time.
  package func next() async -> Next {
    if Task.isCancelled { return .end }
    if let next = state.withLock({ BroadcastBox.take(&$0) }) { return next }
    return await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Next>) in
        let next = state.withLock { state -> Next? in
          if let next = BroadcastBox.take(&state) { return next }
          precondition(state.waiter == nil, "one task at a time may await a sequence")
          state.waiter = waiter
          return nil
        }
        if let next {
          waiter(next)
        } else if Task.isCancelled {
          // The cancellation handler may have run before the waiter was set.
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
    if let element = state.elements.popFirst() {
      state.bytes -= element.bufferedBytes
      return .element(element)
    }
    // A sequence throws its error once, and then has ended.
    if case .overflow = state.ending {
      defer { state.ending = .end }
      return state.ending
    }
    return state.ending
  }
}
