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
    let (completed, isStored, wasDetached, isCutOff) = state.withLock { state in
      state.phase = .ending
      defer { state.isDetached = false }
      return (state.completed, state.isStored, state.isDetached, state.isCutOff)
    }
    if wasDetached { table.detached.subtract(1, ordering: .relaxed) }
    // The handler has said itself how the request ends, unless its transaction was rolled back.
    if let completed, isStored || !hasThrown {
      let reply = OnceReply(completed.code, completed.body)
      if isStored { return end(reply, isOwn: true) }
      return conclude(.completed(completed), with: reply)
    }
    if isCutOff, hasThrown, reply.code == .cancelled {
      // The record of a store in memory says so already, and that of a process which is gone will.
      if table.memory != nil || rule.runsAgain { return end(Self.unknownEnd, isOwn: true) }
      return conclude(.completed(nil), with: Self.unknownEnd)
    }
    let mayRunAgain = reply.isRefused || rule.notFinal.contains(reply.code)
    let isKept = reply.body.count <= table.maxKeptResponse
    conclude(
      mayRunAgain
        ? .abandoned : .completed(isKept ? OnceAnswer(code: reply.code, body: reply.body) : nil),
      with: reply, isDoubtful: completed != nil)
  }

  /// Tells the store, and replies once it knows, or has failed or taken too long. If the store says
  /// that the record was not this run's any more, its own answer counts. `isDoubtful` says that the
  /// record may be completed already, with another answer.
  private func conclude(
    _ conclusion: Conclusion, with reply: OnceReply, isDoubtful: Bool = false
  ) {
    if let memory = table.memory {
      return memory.conclude(attempt.token, conclusion) ? end(reply, isOwn: true) : askForEnd()
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

  /// Tells the store until it knows. Reports what it says, or nil when it has failed or is late for
  /// the first time; nothing more after that.
  func conclude(
    _ conclusion: Conclusion, pause: Int64 = Run.firstPause, isRepeated: Bool = false,
    then report: @escaping (Bool?) -> Void = { _ in }
  ) {
    let (table, token) = (table, attempt.token)
    var report = Optional(report)
    StoreCall.begin(on: loop, within: table.storeTimeout) {
      switch conclusion {
      case .completed(let answer): try await table.store.complete(token, with: answer)
      case .abandoned: try await table.store.abandon(token)
      }
    } then: { [self] (outcome: StoreCall<Bool>.Outcome) in
      var failure: (any Error)?
      switch outcome {
      case .returned(.success(let isDone)), .returnedLate(.success(let isDone)):
        if case .returnedLate = outcome { table.lateCalls.subtract(1, ordering: .relaxed) }
        if isRepeated { table.lateCalls.subtract(1, ordering: .relaxed) }
        report?(isDone)
        return table.remove(self)
      case .late:
        table.lateCalls.add(1, ordering: .relaxed)
        table.failed("complete", nil, at: loop.now)
        // The call may never return.
        after(max(1, expiry - table.status(at: loop.now).time)) { table.remove($0) }
      case .returned(.failure(let error)):
        failure = error
      case .returnedLate(.failure(let error)):
        table.lateCalls.subtract(1, ordering: .relaxed)
        failure = error
      }
      report?(nil)
      report = nil
      guard let failure else { return }
      table.failed("complete", failure, at: loop.now)
      guard table.status(at: loop.now).time < expiry else {
        if isRepeated { table.lateCalls.subtract(1, ordering: .relaxed) }
        return table.remove(self)
      }
      if !isRepeated { table.lateCalls.add(1, ordering: .relaxed) }
      after(pause) {
        $0.conclude(conclusion, pause: min(2 * pause, Run.longestPause), isRepeated: true)
      }
    }
  }

  /// Asks the store how the run has ended: its handler may have completed the record, and thrown
  /// although its transaction was committed; or another run has taken the record over.
  private func askForEnd() {
    let (table, attempt) = (table, attempt)
    if let memory = table.memory { return ended(memory.beginNow(attempt)) }
    StoreCall.begin(on: loop, within: table.storeTimeout) {
      try await table.store.begin(attempt)
    } then: { [self] (outcome: StoreCall<OnceFinding>.Outcome) in
      switch outcome {
      case .returned(.success(let finding)): ended(finding)
      case .returned(.failure(let error)):
        table.failed("begin", error, at: loop.now)
        ended(.unknown)
      case .late:
        table.lateCalls.add(1, ordering: .relaxed)
        ended(.unknown)
      case .returnedLate(let result):
        table.lateCalls.subtract(1, ordering: .relaxed)
        if case .success(.run) = result { conclude(.completed(nil)) }
      }
    }
  }

  private func ended(_ finding: OnceFinding) {
    if case .answered(let answer) = finding {
      return end(OnceReply(answer.code, answer.body), isOwn: true)
    }
    // Its record had expired: it is not to be one that runs.
    if case .run = finding { conclude(.completed(nil)) }
    end(Self.unknownEnd, isOwn: true)
  }

  /// Ends the run, and replies to all who wait. `isOwn` says that its handler was called; `stays`
  /// that the table is to answer for it until the store can; `ifUnwanted` that nothing happens if
  /// somebody waits again, or the run has come here.
  func end(
    _ reply: OnceReply, isOwn: Bool = false, stays: Bool = false, ifUnwanted: Bool = false
  ) {
    var later = reply
    if isOwn { later.isReplayed = !reply.isRefused }
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

  func dropped() {
    end(.refusal(.draining, "the request for which it was to run has ended"))
    if let memory = table.memory {
      _ = memory.abandonNow(attempt.token)
    } else {
      conclude(.abandoned)
    }
  }

  /// Cancels the handler, because the server stops. Returns whether it ran. What it still does has
  /// an end that nobody knows.
  func cutOff() -> Bool {
    let runner = state.withLock { state -> RunningHandler? in
      guard case .running = state.phase else { return nil }
      state.isCutOff = true
      return state.runner
    }
    guard let runner else { return false }
    table.memory?.loseNow(attempt.token)
    runner.cancelHandler()
    return true
  }
}

extension MemoryOnceStore {
  func conclude(_ token: OnceToken, _ conclusion: Run.Conclusion) -> Bool {
    switch conclusion {
    case .completed(let answer): completeNow(token, with: answer)
    case .abandoned: abandonNow(token)
    }
  }
}
