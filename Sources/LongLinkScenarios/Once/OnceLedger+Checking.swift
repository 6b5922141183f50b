// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
internal import Synchronization

extension OnceLedger.State {
  /// Checks that an answer is that of a run.
  mutating func checkAnswer(
    to request: OnceLedger.Request, _ result: Result<[UInt8], LongLinkError>
  ) {
    let number = request.plan.number
    switch result {
    case .success(let bytes):
      guard let body = ScenarioBody(bytes), request.runs.contains(Int(body.answerSize)),
        body.key == number
      else {
        return broken.append((.runsOnce, "request \(number) got an answer that no run of it gave"))
      }
    case .failure(let error) where error.delivery == .answered:
      guard let code = error.response else { return }
      if request.runs.isEmpty {
        broken.append(
          (.truthfulDelivery, "request \(number) was answered, and never ran: \(error)"))
      }
      // Handlers that were cancelled, or were too slow for their callers, have these codes.
      if code == .cancelled || code == .deadlinePassed {
        if !request.isCancelled, code == .cancelled {
          broken.append((.answersKept, "request \(number) was cancelled by no side: \(error)"))
        }
      } else if code == .failed, request.plan.work == .completing {
        // The store has failed where the handler has completed its record.
      } else if !request.runs.contains(where: { runs[$0].code == code }) {
        broken.append((.runsOnce, "request \(number) got a code that no run gave: \(error)"))
      }
    case .failure: break
    }
  }

  /// Checks that an answer that is kept is not refused to its client.
  mutating func checkLoss(
    of request: OnceLedger.Request, _ use: Int, _ result: Result<[UInt8], LongLinkError>,
    _ before: OnceLedger.View?, _ after: OnceLedger.View?
  ) {
    guard case .failure(let error) = result, let before, let after,
      before.store == after.store, before.principal == after.principal,
      !request.isShared, request.uses.count(where: { $0.result == nil }) == 0
    else { return }
    let isElsewhere = error.response == .preconditionFailed
    // A handler that completes its record itself may leave it unknown what became of that.
    let isGone = error.response == .gone && request.plan.work != .completing
    guard isElsewhere || isGone else { return }
    let kept = request.runs.first { index in
      let run = runs[index]
      guard let recorded = run.recorded, recorded < request.uses[use].began else { return false }
      return run.store == after.store && after.time < run.expiry
        && run.scope.principal == after.principal
    }
    if let kept {
      broken.append(
        (
          .answersKept,
          "the answer of request \(request.plan.number) by run \(kept) is lost: \(error)"
        ))
    }
  }

  /// Checks everything after the whole run.
  func checkAll() -> [(OraclePromise, String)] {
    var found = broken
    for number in requests.keys.sorted() {
      guard let request = requests[number] else { continue }
      if request.uses.contains(where: { $0.result == nil }) {
        found.append((.endsOnce, "request \(number) has not ended"))
      }
      if case .failure(let error)? = request.uses.last?.result, error.delivery.isSafeToRetry,
        !request.isShared, request.isOneOrTicket, !request.runs.isEmpty
      {
        found.append(
          (.truthfulDelivery, "request \(number) was reported safe to retry, and ran: \(error)"))
      }
      // What the application makes as a new request each time may run again once its time is over.
      if request.isOneOrTicket { found += check(request.runs, of: "request \(number)") }
    }
    found += checkPlaces()
    return found
  }

  private struct Place: Hashable {
    let store: [UInt8]
    let scope: [UInt8]
    let type: UInt32
    let key: [UInt8]
  }

  /// Checks that no record had two runs within its time.
  private func checkPlaces() -> [(OraclePromise, String)] {
    var places: [Place: [Int]] = [:]
    for (index, run) in runs.enumerated() {
      places[
        Place(
          store: run.store, scope: run.scope.bytes, type: run.type.rawValue, key: run.key),
        default: []
      ].append(index)
    }
    var found: [(OraclePromise, String)] = []
    for all in places.values.sorted(by: { $0[0] < $1[0] }) {
      for (first, second) in zip(all, all.dropFirst())
      where runs[second].began < runs[first].expiry {
        found += check([first, second], of: "the record of request \(runs[first].request)")
      }
    }
    return found
  }

  /// Checks that each run but the last has left it open how the request ends.
  private func check(_ indices: [Int], of what: String) -> [(OraclePromise, String)] {
    zip(indices, indices.dropFirst()).compactMap { first, second in
      let run = runs[first]
      guard let plan = requests[run.request]?.plan else { return nil }
      switch plan.work {
      case .notFinal where run.code == ScenarioStage.Kind.notFinal: return nil
      case .runsAgain where !run.isRecorded: return nil
      default:
        return (
          .runsOnce, "\(what) had run \(first), and run \(second) at server \(runs[second].server)"
        )
      }
    }
  }
}

extension OnceLedger {
  /// The broken promises. Read it after every handler has ended.
  var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { $0.checkAll().map { (promise: $0.0, detail: $0.1) } }
  }

  /// The uses of requests that ended too late, with the times at which they were made and ended.
  var late: [(key: UInt64, asked: LinkInstant, ended: LinkInstant)] {
    state.withLock { state in
      state.requests.keys.sorted().flatMap { number in
        (state.requests[number]?.uses ?? []).compactMap { use in
          guard let ended = use.ended, ended > use.deadline + RequestLedger.lateness else {
            return nil
          }
          return (number, use.began, ended)
        }
      }
    }
  }
}

extension OnceLedger.Request {
  /// Whether all uses are of one request, so that it runs once for them together.
  var isOneOrTicket: Bool { plan.identification != .key || uses.count == 1 }
}
