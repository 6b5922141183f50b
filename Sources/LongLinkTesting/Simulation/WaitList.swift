// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// The tasks of a simulation, and what they wait for, each with its place in the source.
///
/// Any thread may use it. It does not affect the run.
final class WaitList: Sendable {
  /// A task that the simulation has started; its child tasks belong to it.
  struct Scope: Sendable {
    let list: WaitList
    let task: Int

    func ended() {
      list.state.withLock { $0.tasks[task] = nil }
    }
  }

  /// A wait that has begun. Call `ended` when it is over.
  struct Ticket {
    let list: WaitList
    let number: Int

    func ended() {
      list.state.withLock { $0.waits[number] = nil }
    }
  }

  private struct Wait {
    let task: Int
    let place: SourcePlace
    let since: LinkInstant
    let subject: String
    /// Whether the wait is a sleep, which ends by itself.
    let isSleep: Bool
  }

  private struct State {
    /// The places where the tasks were started. The body of the run has the number 0.
    var tasks: [Int: SourcePlace] = [:]
    var waits: [Int: Wait] = [:]
    var numbers = 0

    func waits(of task: Int) -> [Wait] {
      waits.sorted { $0.key < $1.key }.map(\.value).filter { $0.task == task }
    }
  }

  /// The simulation's task that the current task belongs to; nil outside of a simulation.
  @TaskLocal static var scope: Scope?

  private let state = Mutex(State())
  private let now: @Sendable () -> LinkInstant

  init(now: @escaping @Sendable () -> LinkInstant) {
    self.now = now
  }

  /// Records the start of a run's body.
  func began(at place: SourcePlace) -> Scope {
    state.withLock { $0.tasks[0] = place }
    return Scope(list: self, task: 0)
  }

  /// Records the start of a further task.
  func started(at place: SourcePlace) -> Scope {
    state.withLock { state in
      state.numbers += 1
      state.tasks[state.numbers] = place
      return Scope(list: self, task: state.numbers)
    }
  }

  /// Records that the current task waits for something. Call the ticket's `ended` afterwards.
  /// Returns nil outside of a simulation.
  static func begin(_ subject: String, at place: SourcePlace, isSleep: Bool = false) -> Ticket? {
    guard let scope = Self.scope else { return nil }
    let since = scope.list.now()
    return scope.list.state.withLock { state in
      state.numbers += 1
      state.waits[state.numbers] = Wait(
        task: scope.task, place: place, since: since, subject: subject, isSleep: isSleep)
      return Ticket(list: scope.list, number: state.numbers)
    }
  }

  /// The waits of each task, a line each: first the body's, then those of tasks as they were
  /// started.
  var lines: [String] {
    state.withLock { state in
      state.tasks.sorted { $0.key < $1.key }.flatMap { number, place -> [String] in
        let subject = number == 0 ? "the body" : "the task that was started at \(place)"
        let waits = state.waits(of: number).map {
          "\($0.place): \(subject) waits for \($0.subject), since \($0.since)"
        }
        guard waits.isEmpty else { return waits }
        return [
          """
          \(place): \(number == 0 ? subject : "the task that was started here") has not ended. It \
          waits for something without a place, such as a request or a stream (those that have not \
          ended are listed below), a continuation or the value of a task
          """
        ]
      }
    }
  }

  /// The place of the wait that most probably explains why the body does not end; if no single wait
  /// does, the place of the run.
  var stuckPlace: SourcePlace {
    state.withLock { state in
      let ofBody = state.waits(of: 0)
      if ofBody.count == 1 { return ofBody[0].place }
      let others = state.waits.values.filter { $0.task != 0 && !$0.isSleep }
      if ofBody.isEmpty, others.count == 1 { return others[0].place }
      return state.tasks[0] ?? SourcePlace()
    }
  }
}
