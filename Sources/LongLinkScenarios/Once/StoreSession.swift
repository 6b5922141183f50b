// SPDX-License-Identifier: Apache-2.0

internal import LongLinkOnceStore
internal import LongLinkTesting
internal import LongLinkTransport

/// What one run of a process has of a ``LastingStore``: calls that take time, fail, come late or
/// twice.
struct StoreSession: OnceStore {
  let store: LastingStore
  let run: SimulatedProcess.Run
  let server: Int
  /// The number of the session: no two runs of processes have the same.
  let number: Int
  let ledger: OnceLedger
  let simulation: Simulation
  let timeout: Duration

  private struct Failure: Error {}

  /// What becomes of a call.
  private struct Course {
    /// The time until it has its effect, and until its result is back.
    var there = Duration.zero
    var back = Duration.zero
    /// Whether it fails without an effect, or after it.
    var failsBefore = false
    var failsAfter = false
    /// The time after which the same call comes a second time.
    var again: Duration?
  }

  /// Keeps the lease for as long as the process runs.
  func keepLease() {
    store.renew(number)
    run.spawn {
      while !ledger.isClosing {
        store.renew(number)
        try await run.loop.sleep(for: store.lease / 3)
      }
    }
  }

  func status() async throws -> OnceStoreStatus {
    try await call { _ in store.status }
  }

  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding {
    // A begin that came again after its end would never end.
    try await call(mostAgain: 20) { isFirst in
      let finding = store.begin(attempt, by: number)
      guard isFirst, case .run = finding else { return finding }
      let status = store.status
      ledger.begun(
        attempt.token.number, in: status.name, at: status.time,
        until: attempt.expiry(at: status.time))
      ledger.reached(.begin, at: server, attempt.token.number)
      return finding
    }
  }

  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool {
    // A process that is gone does not try again for ever.
    guard run.isAlive else { return true }
    return try await call(mostAgain: 20_000) { isFirst in
      let isDone = store.complete(token, with: answer)
      guard isDone else { return false }
      ledger.recorded(token.number, isKept: answer != nil)
      if isFirst { ledger.reached(.record, at: server, token.number) }
      return true
    }
  }

  func abandon(_ token: OnceToken) async throws -> Bool {
    guard run.isAlive else { return true }
    return try await call(mostAgain: 20_000) { _ in store.abandon(token) }
  }

  /// Makes a call. One that has left its process has its effect even if the process is frozen or
  /// gone by then. One that comes again does so after `mostAgain` ms at most.
  private func call<Value: Sendable>(
    mostAgain: Int = 20, _ effect: @escaping @Sendable (_ isFirst: Bool) -> Value
  ) async throws -> Value {
    guard run.isAlive else { throw Failure() }
    let course = store.use { draw(&$0, mostAgain) }
    let made = simulation.spawn {
      try await simulation.sleep(for: course.there)
      if course.failsBefore { throw Failure() }
      let value = effect(true)
      if let again = course.again {
        simulation.spawn {
          try await simulation.sleep(for: again)
          _ = effect(false)
        }
      }
      try await simulation.sleep(for: course.back)
      if course.failsAfter { throw Failure() }
      return value
    }
    return try await made.value
  }

  private func draw(_ state: inout LastingStore.State, _ mostAgain: Int) -> Course {
    var course = Course(
      there: .milliseconds(state.dice.int(0...10)), back: .milliseconds(state.dice.int(0...10)))
    guard state.dice.chance(state.trouble, in: 100) else { return course }
    let late = timeout + .milliseconds(state.dice.int(1...20_000))
    switch state.dice.int(0...6) {
    case 0: course.there = .milliseconds(state.dice.int(10...2_000))
    case 1: course.back = .milliseconds(state.dice.int(10...2_000))
    case 2: course.there = late
    case 3: course.back = late
    case 4: course.failsBefore = true
    case 5: course.failsAfter = true
    default:
      course.again = .milliseconds(state.dice.int(0...mostAgain))
      course.back = .milliseconds(30)
    }
    return course
  }
}
