// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkServer
internal import NIOCore

extension PortCore {
  /// The connections that are visited in one turn of a loop: some 100 µs.
  private static let slice = 256
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

  /// Asks each loop whether it runs: returns true for those that do.
  func pingLoops(then: @escaping ([Bool]) -> Void) {
    askLoops { _ in
      true
    } then: {
      then($0.map { $0 ?? false })
    }
  }

  // MARK: Surveys

  /// Surveys all loops, and calls `then` with those that did not answer in time. The reports are
  /// those of the couriers.
  ///
  /// One survey runs at a time, so that many requests cost the loops no more than one.
  func survey(then: @escaping (_ incomplete: [Int]) -> Void) {
    surveyWaiters.append(then)
    if !isSurveying { surveyNow() }
  }

  private func surveyNow() {
    guard !surveyWaiters.isEmpty else { return }
    isSurveying = true
    let waiters = surveyWaiters
    surveyWaiters = []
    surveyNumber += 1
    let number = surveyNumber
    let couriers = couriersNow
    _ = LoopRound<LoopReport>(couriers, on: thread) { round, courier in
      round.ask(courier) { [watch] visit in
        visit.beginSurvey(number)
        return (visit.ids, watch.figures)
      } then: { round, basis in
        guard let figures = basis.1 else { return round.answer(courier.index, nil) }
        self.visit(basis.0.sorted()[...], number, figures, courier, in: round)
      }
    } then: { reports in
      for (courier, report) in zip(couriers, reports) {
        if let report { courier.latest = report }
      }
      let incomplete = reports.indices.filter { reports[$0] == nil }
      self.isSurveying = false
      for waiter in waiters { waiter(incomplete) }
      self.surveyNow()
    }
  }

  private func visit(
    _ ids: ArraySlice<UInt64>, _ number: UInt64, _ figures: Figures, _ courier: LoopCourier,
    in round: LoopRound<LoopReport>
  ) {
    let slice = ids.prefix(Self.slice)
    let rest = ids.dropFirst(Self.slice)
    let isLast = rest.isEmpty
    round.ask(courier) { visit in
      visit.survey(slice, in: number)
      return isLast ? visit.endSurvey(number) : nil
    } then: { round, survey in
      guard isLast else { return self.visit(rest, number, figures, courier, in: round) }
      round.answer(
        courier.index, survey.map { LoopReport(survey: $0, figures: figures) })
    }
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
