// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

// How a run ends, and how the store gets to know.

extension Run {
  /// What the store is told.
  enum Conclusion: Sendable {
    case completed(OnceAnswer?)
    case abandoned
  }

  /// The time between two calls of a store that fails, in milliseconds: at first, and at most.
  private static let firstPause: Int64 = 100
  private static let longestPause: Int64 = 10_000

  func returned(_ reply: OnceReply, hasThrown: Bool) {
    let (completed, isStored) = handlerReturned()
    if let completed, isStored {
      return end(OnceReply(completed.code, completed.body), isOwn: true)
    }
    // The end of the server has cancelled the handler. Nobody knows what it had done before.
    if hasThrown, reply.code == .cancelled, state.withLock({ $0.isCutOff }) {
      // The record of a store in memory says so already, and that of a process which is gone will.
      if table.memory != nil || rule.runsAgain { return end(Self.unknownEnd, isOwn: true) }
      return conclude(.completed(nil), with: Self.unknownEnd)
    }
    // If the handler's transaction was committed, the store has its answer, and refuses this one.
    // If it was undone, this one counts.
    let isOther = completed.map { $0.code != reply.code || $0.body != reply.body }
    conclude(
      conclusion(reply.code, reply.body, isRefused: reply.isRefused), with: reply,
      isDoubtful: isOther == true)
  }

  func concluded(_ code: ResponseCode, _ body: [UInt8], isRefused: Bool) -> OnceReply? {
    guard let memory = table.memory else { preconditionFailure("the store has to be waited for") }
    let (completed, isStored) = handlerReturned()
    if let completed, isStored { return OnceReply(completed.code, completed.body) }
    // A handler may have completed the record itself.
    return conclude(conclusion(code, body, isRefused: isRefused), in: memory)
      ? nil : reply(to: beginNow(in: memory))
  }

  private func conclude(_ conclusion: Conclusion, in memory: MemoryOnceStore) -> Bool {
    let index = index.load(ordering: .relaxed)
    switch conclusion {
    case .completed(let answer):
      return memory.completeNow(begin.number, at: index, with: answer)
    case .abandoned: return memory.abandonNow(begin.number, at: index)
    }
  }

  /// Notes that the handler has returned. Returns what it has completed the record with, and
  /// whether the store has that.
  private func handlerReturned() -> (completed: OnceAnswer?, isStored: Bool) {
    let (completed, isStored, wasDetached) = state.withLock { state in
      // It may have been given up.
      if case .running = state.phase { state.phase = .ending }
      defer {
        state.isCalled = false
        state.isDetached = false
      }
      return (state.completed, state.isStored, state.isDetached)
    }
    if wasDetached {
      table.detached.remove(client.scope)
      stopLimit()
    }
    return (completed, isStored)
  }

  /// What the store is told of a reply of the handler's.
  private func conclusion(_ code: ResponseCode, _ body: [UInt8], isRefused: Bool) -> Conclusion {
    if isRefused || !rule.notFinal.isEmpty && rule.notFinal.contains(code) { return .abandoned }
    let isKept = body.count <= table.maxKeptResponse
    return .completed(isKept ? OnceAnswer(code: code, body: body) : nil)
  }

  /// Tells the store, and replies once it knows, or has failed or taken too long. If the store says
  /// that the record was not this run's any more, its own answer counts. `isDoubtful` says that the
  /// record may be completed already, with another answer.
  private func conclude(
    _ conclusion: Conclusion, with reply: OnceReply, isDoubtful: Bool = false
  ) {
    if let memory = table.memory {
      return conclude(conclusion, in: memory) ? end(reply, isOwn: true) : askForEnd()
    }
    conclude(conclusion) { [self] isDone in
      switch isDone {
      case true?: end(reply, isOwn: true)
      case false?: askForEnd()
      // Until the store has it, the table answers for it.
      case nil: end(isDoubtful ? Self.unknownEnd : reply, isOwn: true, stays: true)
      }
    }
  }

  private static let unknownEnd = OnceTable.gone(
    "the request has run, and nobody knows how it has ended")

  /// Tells the store until it knows, however long that takes: its record would seem to run for
  /// ever. Reports what it says, or nil when it has failed or is late for the first time; nothing
  /// more after that. An answer is given up at the record's expiry.
  func conclude(
    _ conclusion: Conclusion, pause: Int64 = Run.firstPause, isRepeated: Bool = false,
    then report: @escaping (Bool?) -> Void = { _ in }
  ) {
    let (table, token) = (table, token)
    var report = Optional(report)
    table.call(on: loop) {
      switch conclusion {
      case .completed(let answer): try await table.store.complete(token, with: answer)
      case .abandoned: try await table.store.abandon(token)
      }
    } then: { [self] (outcome: StoreCall<Bool>.Outcome) in
      var failure: (any Error)?
      switch outcome {
      case .returned(.success(let isDone)), .returnedLate(.success(let isDone)):
        if isRepeated { table.lateCalls.subtract(1, ordering: .relaxed) }
        stopLimit()
        report?(isDone)
        return table.remove(self)
      case .returned(.failure(let error)), .returnedLate(.failure(let error)): failure = error
      case .late: break
      }
      if report != nil, case .completed = conclusion, !table.isStopped.load(ordering: .acquiring) {
        forgetAtExpiry()
      }
      report?(nil)
      report = nil
      table.failed("complete", failure, at: loop.now)
      // A late call may still return.
      guard failure != nil else { return }
      guard table.retries(self) else { return table.remove(self) }
      if !isRepeated { table.lateCalls.add(1, ordering: .relaxed) }
      self.pause(pause) { run in
        run.conclude(
          run.isOver ? conclusion.withoutAnswer : conclusion,
          pause: min(2 * pause, Run.longestPause), isRepeated: true)
      }
    }
  }

  /// Lets the store answer again once the record's expiry has passed by the time that the server
  /// counts. By the store's clock, which may be slower, it may not have.
  private func forgetAtExpiry() {
    stopLimit()
    let limit = after(max(1, expiry - table.status(at: loop.now).time)) { run in
      run.state.withLock { state in
        if case .ended = state.phase { state.phase = .ended(Self.unknownEnd) }
      }
      run.table.forget(run)
    }
    state.withLock { $0.limit = limit }
  }

  /// Lets no timer of the run fire any more, because the server has stopped; on the loop.
  func stopTimers() {
    stopLimit()
    if let pause = state.withLock({ $0.pause.take() }) { loop.cancel(pause) }
  }

  private func stopLimit() {
    if let limit = state.withLock({ $0.limit.take() }) { loop.cancel(limit) }
  }

  /// Asks the store how the run has ended: its handler may have completed the record, and thrown
  /// although its transaction was committed; or another run has taken the record over.
  private func askForEnd() {
    let table = table
    if let memory = table.memory { return ended(beginNow(in: memory)) }
    let attempt = attempt
    table.call(on: loop) {
      try await table.store.begin(attempt)
    } then: { [self] (outcome: StoreCall<OnceFinding>.Outcome) in
      switch outcome {
      case .returned(.success(let finding)): ended(finding)
      case .returned(.failure(let error)):
        table.failed("begin", error, at: loop.now)
        ended(.unknown)
      case .late:
        ended(.unknown)
      case .returnedLate(let result):
        if case .success(.run) = result { conclude(.completed(nil)) }
      }
    }
  }

  private func ended(_ finding: OnceFinding) { end(reply(to: finding), isOwn: true) }

  /// The reply if the store has refused the end of the run, and has then found this.
  private func reply(to finding: OnceFinding) -> OnceReply {
    if case .answered(let answer) = finding { return OnceReply(answer.code, answer.body) }
    // Its record had expired: it is not to be one that runs.
    if case .run = finding {
      if let memory = table.memory {
        _ = conclude(.completed(nil), in: memory)
      } else {
        conclude(.completed(nil))
      }
    }
    return Self.unknownEnd
  }

  /// Ends the run, and replies to all who wait. `isOwn` says that its handler was called; `stays`
  /// that the table is to answer for it until the store can; `ifUnwanted` that nothing happens if
  /// somebody waits again, or the run has come here.
  func end(
    _ reply: OnceReply, isOwn: Bool = false, stays: Bool = false, ifUnwanted: Bool = false
  ) {
    var later = reply
    if isOwn, !reply.isRefused {
      later.isReplayed = true
      if later.outcome == .run { later.outcome = .replayed }
    } else if reply.code == .cancelled {
      // Its request was cancelled before the handler was called; those who wait have not cancelled.
      later = Self.notRun
    }
    var isWanted = false
    let waiting = state.withLock { state -> (RunningHandler?, Bool, [RunningHandler])? in
      if case .ended = state.phase { return nil }
      if ifUnwanted, !state.isUnwanted {
        isWanted = true
        return nil
      }
      state.phase = .ended(later)
      defer {
        state.runner = nil
        state.waiters = [:]
      }
      let waiters =
        state.waiters.isEmpty
        ? [] : state.waiters.values.sorted { $0.order < $1.order }.map(\.exchange)
      return (state.runner, state.runnerWaits, waiters)
    }
    if isWanted { return }
    if !stays { table.remove(self) }
    guard let (runner, runnerWaits, waiters) = waiting else { return }
    if let runner {
      if !isOwn { runner.isNotCalled() }
      if runnerWaits { runner.answer(reply) }
    }
    for waiter in waiters { waiter.answer(later) }
  }

  /// The reply to those who waited for a run whose handler was not called after all.
  private static let notRun = OnceReply.refusal(
    .draining, "the request for which it was to run has ended", .store)

  func dropped() {
    end(Self.notRun)
    if let memory = table.memory {
      _ = conclude(.abandoned, in: memory)
    } else {
      conclude(.abandoned)
    }
  }

  /// Cancels the handler, because the server stops. Returns whether it ran. What it still does has
  /// an end that nobody knows, unless it returns after all.
  func cutOff() -> Bool {
    let (isCalled, runner) = state.withLock { state in
      state.isCutOff = state.isCalled
      return (state.isCalled, state.runner)
    }
    guard isCalled else { return false }
    table.memory?.loseNow(token)
    runner?.cancelHandler()
    return true
  }

  // MARK: Handlers whose requests have ended

  /// How long such a handler may run on after it was cancelled, in milliseconds.
  private static let graceTime: Int64 = 30_000

  /// Counts the handler among those whose requests have ended, and bounds its time; on the loop.
  func detaches() {
    table.detached.add(client.scope)
    let limit = loop.schedule(at: loop.now + table.detachedTimeout, Limit(self), token: 0)
    state.withLock { $0.limit = limit }
  }

  /// Cancels the handler at the end of its time.
  private func isOverdue() {
    guard let runner = state.withLock({ $0.runner }) else { return }
    runner.cancelHandler()
    let limit = after(Self.graceTime) { run in
      // As long as it runs, the table answers for it.
      run.end(Self.unknownEnd, isOwn: true, stays: true)
    }
    state.withLock { $0.limit = limit }
  }

  private final class Limit: TimerHandler {
    private let run: Run

    init(_ run: Run) {
      self.run = run
    }

    func timerFired(token: UInt64) { run.isOverdue() }
  }
}

extension Run.Conclusion {
  /// The same without an answer, which nobody gets any more.
  var withoutAnswer: Run.Conclusion { if case .completed = self { .completed(nil) } else { self } }
}
