// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkServer
internal import NIOCore

extension PortCore {
  /// The connections that are described in one turn of a loop: each has some texts.
  private static let descriptions = 32

  /// Asks each loop one thing.
  func askLoops<Answer: Sendable>(
    _ question: @escaping @Sendable (ServerLoopVisit) -> Answer,
    then: @escaping ([Answer?]) -> Void
  ) {
    let couriers = couriersNow
    _ = LoopRound<Answer>(couriers, on: thread) { round, courier in
      round.ask(courier, question) { round, answer in round.answer(courier.index, answer) }
    } then: {
      then($0)
    }
  }

  // MARK: Waits

  /// Asks each loop whether it runs. However many requests do, each loop has one ping at a time.
  func pingLoops(then: @escaping ([LoopAnswer]) -> Void) { wait(for: .ping, then: then) }

  /// Surveys all loops. However many requests do, each loop has one survey at a time. The reports
  /// are those of the couriers.
  func survey(then: @escaping ([LoopAnswer]) -> Void) { wait(for: .survey, then: then) }

  private func wait(for goal: LoopWait.Goal, then: @escaping ([LoopAnswer]) -> Void) {
    let wait = LoopWait(for: goal, of: couriersNow, then: then)
    guard !wait.isOver else { return wait.end() }
    waits.append(wait)
    for courier in wait.couriers { ask(courier, for: goal) }
    let deadline = wait.began + PortLimits.loopTime
    let port = thread.loop.assumeIsolated()
    wait.timer = port.scheduleTask(deadline: deadline - PortLimits.lastPing) {
      // Those that have answered long ago may hang too by now.
      for courier in wait.couriers { self.ask(courier, for: .ping) }
      wait.timer = port.scheduleTask(deadline: deadline) { self.end(wait) }
    }
  }

  private func ask(_ courier: LoopCourier, for goal: LoopWait.Goal) {
    switch goal {
    case .ping: courier.ping { self.heard(of: courier) }
    case .survey: courier.survey(watch) { self.heard(of: courier) }
    }
  }

  /// Ends the waits that are over. What a loop did before a request is not what that waits for.
  private func heard(of courier: LoopCourier) {
    for wait in waits where wait.couriers.contains(where: { $0 === courier }) {
      if wait.isOver { end(wait) } else if !wait.has(courier) { ask(courier, for: wait.goal) }
    }
  }

  private func end(_ wait: LoopWait) {
    guard let index = waits.firstIndex(where: { $0 === wait }) else { return }
    waits.remove(at: index)
    wait.end()
  }

  // MARK: Connections

  /// Asks all loops for open connections whose numbers are above `id`, at most `count` of each
  /// loop, in order.
  func openConnections(
    after id: UInt64, most count: Int, then: @escaping ([[ConnectionView]?]) -> Void
  ) {
    _ = LoopRound<[ConnectionView]>(couriersNow, on: thread) { round, courier in
      round.ask(courier) {
        $0.ids
      } then: { round, ids in
        self.describe(
          ids.filter { $0 > id }.sorted()[...], most: count, [], courier, in: round)
      }
    } then: {
      then($0)
    }
  }

  private func describe(
    _ ids: ArraySlice<UInt64>, most count: Int, _ found: [ConnectionView],
    _ courier: LoopCourier, in round: LoopRound<[ConnectionView]>
  ) {
    guard !ids.isEmpty, found.count < count else {
      return round.answer(courier.index, Array(found.prefix(count)))
    }
    let slice = ids.prefix(Self.descriptions)
    round.ask(courier) {
      $0.connections(slice)
    } then: { round, views in
      self.describe(
        ids.dropFirst(Self.descriptions), most: count, found + views, courier, in: round)
    }
  }

  /// Calls `then` with the connection that has this number, which `find` looks for on each loop; or
  /// with nil and the loops that did not answer.
  func connection(
    then: @escaping (ConnectionView?, _ incomplete: [Int]) -> Void,
    _ find: @escaping @Sendable (ServerLoopVisit) -> ConnectionView?
  ) {
    askLoops { visit in
      [find(visit)]
    } then: { answers in
      let found = answers.lazy.compactMap { $0?.first ?? nil }.first
      then(found, found == nil ? answers.indices.filter { answers[$0] == nil } : [])
    }
  }
}
#endif
