// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore

/// One request that waits until each loop has done something since, for at most a second. It is
/// used on the port's thread.
final class LoopWait {
  /// What the loops have to do.
  enum Goal {
    /// Run any job.
    case ping
    /// Begin and end a survey.
    case survey
  }

  let goal: Goal
  let couriers: [LoopCourier]
  let began = NIODeadline.now()
  var timer: Scheduled<Void>?
  private let then: ([LoopAnswer]) -> Void

  init(
    for goal: Goal, of couriers: [LoopCourier], then: @escaping ([LoopAnswer]) -> Void
  ) {
    self.goal = goal
    self.couriers = couriers
    self.then = then
  }

  /// Whether a loop has done what this waits for.
  func has(_ courier: LoopCourier) -> Bool {
    switch goal {
    case .ping: courier.ran >= began
    case .survey: courier.latest.map { $0.began >= began } ?? false
    }
  }

  var isOver: Bool { couriers.allSatisfy(has) }

  /// Ends the wait with what the loops have done so far.
  func end() {
    timer?.cancel()
    timer = nil
    then(
      couriers.map { courier in
        LoopAnswer(courier: courier, isLive: courier.ran >= began, isWhole: has(courier))
      })
  }
}

/// What one loop has done for a request.
struct LoopAnswer {
  let courier: LoopCourier
  /// Whether the loop has run a job since the request. One that lives can be too slow for a survey.
  let isLive: Bool
  /// Whether the loop has done all that it was asked for. If not, its report is an older one.
  let isWhole: Bool
}

/// What is known of a loop that did not answer.
struct StaleLoop: Encodable {
  let loop: Int
  /// The age of its figures; null if there are none.
  let figuresMsAgo: Nullable<Int64>
}

extension [LoopAnswer] {
  /// The loops whose figures are older than the request; nil if there are none.
  var stale: [StaleLoop]? {
    let stale = filter { !$0.isWhole }.map { answer in
      StaleLoop(loop: answer.courier.index, figuresMsAgo: Nullable(answer.courier.age))
    }
    return stale.isEmpty ? nil : stale
  }

  /// Lines that say so, for people.
  var notes: [String] {
    (stale ?? []).map { stale in
      let figures =
        stale.figuresMsAgo.value.map { "its figures are \(PageText.time($0 * 1_000_000)) old" }
        ?? "it has told nothing yet"
      return "Loop \(stale.loop) did not answer: \(figures)."
    }
  }
}

extension LoopCourier {
  /// The age of the loop's last report in milliseconds; nil if there is none.
  var age: Int64? {
    latest.map { max(0, (NIODeadline.now() - $0.began).nanoseconds / 1_000_000) }
  }
}
#endif
