// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkServer
internal import NIOCore

/// One question to several loops, or a sequence of questions, within a time. It is used on the
/// port's thread, and lives until it is over.
final class LoopRound<Answer: Sendable> {
  let deadline: NIODeadline
  private let thread: PortThread
  private var answers: [Answer?]
  private var missing: Int
  private var timer: Scheduled<Void>?
  private var then: (([Answer?]) -> Void)?

  /// Begins a round; `then` is called with the answers in the order of the loops, once all have
  /// come or the time is over. The answer of a loop that did not give one in time is nil.
  init(
    _ couriers: [LoopCourier], on thread: PortThread,
    begin: (LoopRound, LoopCourier) -> Void, then: @escaping ([Answer?]) -> Void
  ) {
    deadline = .now() + PortLimits.loopTime
    self.thread = thread
    self.then = then
    answers = Array(repeating: nil, count: couriers.count)
    missing = couriers.count
    guard missing > 0 else {
      end()
      return
    }
    timer = thread.loop.assumeIsolated().scheduleTask(deadline: deadline) { self.end() }
    for courier in couriers { begin(self, courier) }
  }

  /// Asks one of the loops.
  func ask<Value: Sendable>(
    _ courier: LoopCourier, _ question: @escaping @Sendable (ServerLoopVisit) -> Value,
    then: @escaping (LoopRound, Value) -> Void
  ) {
    let bound = NIOLoopBound((self, then), eventLoop: thread.loop)
    courier.ask(until: deadline) { visit in
      let value = question(visit)
      return { bound.value.1(bound.value.0, value) }
    }
  }

  /// Notes the answer of the loop at this place; nil if it has none.
  func answer(_ place: Int, _ answer: Answer?) {
    guard then != nil else { return }
    answers[place] = answer
    missing -= 1
    if missing == 0 { end() }
  }

  private func end() {
    timer?.cancel()
    timer = nil
    let then = then
    self.then = nil
    then?(answers)
  }
}
#endif
