// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkOnceStore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// Whether the store has said its name.
enum NameAnswer {
  case known
  case failed
}

/// The question for the store's name, of which there is one at a time, and the runs that wait for
/// an answer.
struct NameQuestion<Waiter> {

  /// What becomes of a run that needs an answer.
  enum Step: Equatable {
    case hears(NameAnswer)
    case begins
    case waits
    /// It waits, and the next question is due at that time.
    case waitsUntil(LinkInstant)
    /// Too many wait.
    case isRefused
  }

  /// The shortest time between the begins of two questions, in nanoseconds.
  static var pause: Int64 { 100_000_000 }
  /// The most runs that wait, those that the open question answers included.
  static var mostWaiting: Int { OnceTable.mostCalls }

  /// When the last question began, and its answer; without one while it is open.
  private var last: (begin: LinkInstant, answer: NameAnswer?)?
  /// Those that the open question answers.
  private var asking: [Waiter] = []
  /// Those that came after its begin, when the store may have said its name already.
  private var waiting: [Waiter] = []
  /// Begins the next question.
  var timer: (timer: LoopTimer, loop: EventLoop)?

  /// Adds a run, which needs the answer of a question that begins no earlier than it has arrived.
  mutating func add(
    _ run: Waiter, arrivedAt arrival: LinkInstant, at now: LinkInstant
  ) -> Step {
    if let last, let answer = last.answer, last.begin >= arrival { return .hears(answer) }
    guard asking.count + waiting.count < Self.mostWaiting else { return .isRefused }
    if let last, last.answer == nil, last.begin >= arrival {
      asking.append(run)
      return .waits
    }
    waiting.append(run)
    guard let last else { return waiting.count > 1 ? .waits : .begins }
    if last.answer == nil || waiting.count > 1 { return .waits }
    let next = last.begin + Self.pause
    return next > now ? .waitsUntil(next) : .begins
  }

  /// Notes that a question begins: it answers all that wait. Returns false if none does, or if a
  /// question is open.
  mutating func begin(at now: LinkInstant) -> Bool {
    timer = nil
    guard !waiting.isEmpty else { return false }
    if let last, last.answer == nil { return false }
    last = (now, nil)
    (asking, waiting) = (waiting, [])
    return true
  }

  /// Notes the answer. Returns those that hear it, and when the next question is due, if any.
  mutating func end(_ answer: NameAnswer) -> (asking: [Waiter], next: LinkInstant?) {
    last?.answer = answer
    defer { asking = [] }
    return (asking, waiting.isEmpty ? nil : last.map { $0.begin + Self.pause })
  }

  /// Ends the wait of all, because the server has stopped.
  mutating func stop() -> (waiting: [Waiter], timer: (timer: LoopTimer, loop: EventLoop)?) {
    defer { (asking, waiting, timer) = ([], [], nil) }
    return (asking + waiting, timer)
  }
}

extension OnceTable {
  /// Lets a run hear the store's name, which is asked for no earlier than it has arrived; on the
  /// run's loop.
  func askName(for run: Run, arrivedAt arrival: LinkInstant) {
    let loop = run.loop
    let step = state.withLock { state in
      isStopped.load(ordering: .acquiring)
        ? .hears(.failed) : state.question.add(run, arrivedAt: arrival, at: loop.driver.now)
    }
    switch step {
    case .hears(let answer): run.hearsName(answer)
    case .begins: beginQuestion(on: loop)
    case .waits: break
    case .waitsUntil(let time): beginQuestion(at: time, on: loop)
    case .isRefused: run.hearsName(.failed)
    }
  }

  /// Asks for the store's name, unless nobody waits for it; on the loop.
  private func beginQuestion(on loop: EventLoop) {
    let now = loop.driver.now
    guard state.withLock({ $0.question.begin(at: now) }) else { return }
    guard mayAsk else { return endQuestion(.failed, on: loop) }
    call(on: loop) { [store] in
      try await store.status()
    } then: { [self] (outcome: StoreCall<OnceStoreStatus>.Outcome) in
      switch outcome {
      case .returned(.success(let status)):
        learn(status, askedAt: now, at: loop.driver.now)
        endQuestion(.known, on: loop)
      case .returned(.failure(let error)):
        failed("status", error, at: loop.now)
        endQuestion(.failed, on: loop)
      case .late:
        failed("status", nil, at: loop.now)
        endQuestion(.failed, on: loop)
      case .returnedLate: break
      }
    }
  }

  private func endQuestion(_ answer: NameAnswer, on loop: EventLoop) {
    let (asking, next) = state.withLock { $0.question.end(answer) }
    tell(asking[...], answer, on: loop)
    if let next { beginQuestion(at: next, on: loop) }
  }

  /// The most runs that hear the answer in one turn of the loop.
  private static let mostTold = 256

  /// Lets runs hear the answer, in as many turns as there have to be; on the loop.
  private func tell(_ runs: ArraySlice<Run>, _ answer: NameAnswer, on loop: EventLoop) {
    for run in runs.prefix(Self.mostTold) { run.loop.runOnLoop { run.hearsName(answer) } }
    let others = runs.dropFirst(Self.mostTold)
    guard !others.isEmpty else { return }
    let next = NextTurn { [self] in tell(others, answer, on: loop) }
    _ = loop.schedule(at: loop.now, next, token: 0)
  }

  private final class NextTurn: TimerHandler {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
      self.body = body
    }

    func timerFired(token: UInt64) { body() }
  }

  /// Asks at a time, which may have passed; on the loop.
  private func beginQuestion(at time: LinkInstant, on loop: EventLoop) {
    let timer = loop.schedule(at: time, QuestionTimer(self, loop), token: 0)
    let isStopped = state.withLock { state in
      state.question.timer = (timer, loop)
      return self.isStopped.load(ordering: .acquiring)
    }
    if isStopped { loop.cancel(timer) }
  }

  private final class QuestionTimer: TimerHandler {
    private let table: OnceTable
    private let loop: EventLoop

    init(_ table: OnceTable, _ loop: EventLoop) {
      self.table = table
      self.loop = loop
    }

    func timerFired(token: UInt64) { table.beginQuestion(on: loop) }
  }
}
