// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
internal import Synchronization

/// A point in a request that runs once, after which a process can crash.
package enum OncePoint: Int, CaseIterable, Hashable, Sendable {
  /// Its record has begun, and its handler has not.
  case begin
  /// Its handler has had its effect, and the store does not know how it has ended.
  case effect
  /// The store has its response, and its caller has not.
  case record
  /// Its caller has the response.
  case answer
}

/// Records requests that run once: when they are made, run, are stored and end.
///
/// It is the model of what ``OraclePromise/runsOnce`` and ``OraclePromise/answersKept`` promise.
final class OnceLedger: Sendable {
  /// One run of a handler.
  struct Run {
    let request: UInt64
    let token: Int64
    let scope: OnceScope
    let key: [UInt8]
    let type: MessageType
    let server: Int
    /// The store's name, and the time by its clock; when the record expires, at the earliest.
    let store: [UInt8]
    let began: Int64
    let expiry: Int64
    /// When its handler was called, in virtual time.
    let ran: LinkInstant
    var code: ResponseCode?
    /// When the store had the response, if it keeps it.
    var recorded: LinkInstant?
    /// Whether the store knows that it has ended.
    var isRecorded = false
  }

  /// Each time that an application makes a request.
  struct Use {
    let began: LinkInstant
    let deadline: LinkInstant
    var ended: LinkInstant?
    var result: Result<[UInt8], LongLinkError>?
  }

  struct Request {
    let plan: OncePlan.Request
    var uses: [Use] = []
    /// The numbers of its runs.
    var runs: [Int] = []
    /// Whether several processes have used its ticket.
    var isShared = false
    /// Whether its caller may have cancelled it.
    var isCancelled = false
  }

  /// What the store says now of where requests of a client are kept.
  struct View {
    var store: [UInt8]
    var time: Int64
    var principal: String?
  }

  struct State {
    var requests: [UInt64: Request] = [:]
    var runs: [Run] = []
    var begins: [Int64: (store: [UInt8], time: Int64, expiry: Int64)] = [:]
    var replays = 0
    var broken: [(OraclePromise, String)] = []
    /// What crashes each server, and after which point.
    var crashes: [Int: (point: OncePoint, crash: @Sendable () -> Void)] = [:]
    var crashed: [OncePoint: Int] = [:]
    var isClosing = false
  }

  let state = Mutex(State())
  private let now: @Sendable () -> LinkInstant

  init(now: @escaping @Sendable () -> LinkInstant) {
    self.now = now
  }

  // MARK: Callers

  /// Records that an application makes a request; returns the number of this use.
  func asked(_ plan: OncePlan.Request, isShared: Bool) -> Int {
    let now = now()
    return state.withLock { state in
      var request = state.requests[plan.number] ?? Request(plan: plan)
      if isShared { request.isShared = true }
      request.uses.append(
        Use(began: now, deadline: now.advanced(by: plan.deadline ?? .seconds(15))))
      state.requests[plan.number] = request
      return request.uses.count - 1
    }
  }

  /// Records how a use of a request has ended. `view` is where its answer should be kept, as it was
  /// when the use began and is now; nil if that is not known.
  func ended(
    _ plan: OncePlan.Request, use: Int, _ result: Result<[UInt8], LongLinkError>,
    isReplayed: Bool, from before: View?, to after: View?
  ) {
    let now = now()
    let server = state.withLock { state -> (Int, Int64)? in
      guard var request = state.requests[plan.number] else { return nil }
      if request.uses[use].result != nil {
        state.broken.append((.endsOnce, "request \(plan.number) ended twice"))
      }
      request.uses[use].ended = now
      request.uses[use].result = result
      if isReplayed, case .success = result { state.replays += 1 }
      if case .failure(let error) = result,
        error.code == .cancelled || error.code == .deadlineExceeded
      {
        request.isCancelled = true
      }
      state.requests[plan.number] = request
      state.checkAnswer(to: request, result)
      state.checkLoss(of: request, use, result, before, after)
      guard case .success = result, let last = request.runs.last else { return nil }
      return (state.runs[last].server, state.runs[last].token)
    }
    if let (server, token) = server { reached(.answer, at: server, token) }
  }

  // MARK: Stores and handlers

  /// Records that a record has begun in a store that outlives processes.
  func begun(_ token: Int64, in store: [UInt8], at time: Int64, until expiry: Int64) {
    state.withLock { $0.begins[token] = (store, time, expiry) }
  }

  /// Records that a handler runs; returns the number of the run.
  ///
  /// `memory` is the name and time of a store in memory, and the earliest expiry of a record that
  /// has just begun there.
  func ran(
    _ number: UInt64, _ token: OnceToken, on server: Int,
    memory: (store: [UInt8], time: Int64, expiry: Int64)?
  ) -> Int {
    let now = now()
    return state.withLock { state in
      let begin = memory ?? state.begins[token.number] ?? ([], 0, 0)
      state.runs.append(
        Run(
          request: number, token: token.number, scope: token.scope, key: token.key,
          type: token.type, server: server, store: begin.store, began: begin.time,
          expiry: begin.expiry, ran: now))
      let run = state.runs.count - 1
      if begin.store.isEmpty {
        state.broken.append((.runsOnce, "request \(number) ran, and its record has not begun"))
      }
      if state.requests[number] == nil {
        state.broken.append((.runsOnce, "request \(number) ran, and was never made"))
      }
      state.requests[number]?.runs.append(run)
      return run
    }
  }

  /// Records that a handler has returned. `isRecorded` is whether the store knows by then.
  func returned(_ run: Int, _ code: ResponseCode, isRecorded: Bool, isKept: Bool) {
    let now = now()
    state.withLock { state in
      state.runs[run].code = code
      guard isRecorded else { return }
      state.runs[run].isRecorded = true
      if isKept { state.runs[run].recorded = now }
    }
  }

  /// Records that a store has the end of a run.
  func recorded(_ token: Int64, isKept: Bool) {
    let now = now()
    state.withLock { state in
      guard let run = state.runs.lastIndex(where: { $0.token == token }) else { return }
      state.runs[run].isRecorded = true
      if isKept { state.runs[run].recorded = now }
    }
  }

  // MARK: Crashes

  /// Lets a server crash when a request there is at a point.
  func crash(_ server: Int, after point: OncePoint, _ crash: @escaping @Sendable () -> Void) {
    state.withLock { $0.crashes[server] = (point, crash) }
  }

  /// Takes back that a server is to crash.
  func cancelCrash(of server: Int) { state.withLock { $0.crashes[server] = nil } }

  /// Takes back that any server is to crash.
  func cancelCrashes() { state.withLock { $0.crashes = [:] } }

  /// Records that a request is at a point.
  func reached(_ point: OncePoint, at server: Int, _ token: Int64) {
    let crash = state.withLock { state -> (@Sendable () -> Void)? in
      guard let crash = state.crashes[server], crash.point == point else { return nil }
      state.crashes[server] = nil
      state.crashed[point, default: 0] += 1
      return crash.crash
    }
    crash?()
  }

  // MARK: Results

  /// Whether the run ends, so that nothing is to be kept up any more.
  var isClosing: Bool { state.withLock { $0.isClosing } }

  func close() { state.withLock { $0.isClosing = true } }

  /// Whether a run is the first one of its request.
  func isFirst(_ run: Int) -> Bool {
    state.withLock { state in state.requests[state.runs[run].request]?.runs.first == run }
  }

  /// Whether a request has run.
  func hasRun(_ number: UInt64) -> Bool {
    state.withLock { $0.requests[number]?.runs.isEmpty == false }
  }

  var runCount: Int { state.withLock { $0.runs.count } }

  var succeededCount: Int {
    state.withLock { state in
      state.requests.values.reduce(0) { count, request in
        count + request.uses.count { if case .success = $0.result { true } else { false } }
      }
    }
  }

  var openCount: Int {
    state.withLock { state in
      state.requests.values.reduce(0) { $0 + $1.uses.count { $0.result == nil } }
    }
  }

  /// What has happened, for the report.
  var total: OnceTotal {
    state.withLock { OnceTotal($0) }
  }
}

/// What has happened to the requests of a scenario that run once.
package struct OnceTotal: Hashable, Sendable {
  /// The number of requests.
  package private(set) var requests = 0
  /// How often applications made them, repetitions included.
  package private(set) var uses = 0
  /// How often their handlers ran.
  package private(set) var runs = 0
  /// The number of successes that told of an earlier request.
  package private(set) var replays = 0
  /// How often a server crashed at each point of a request.
  package private(set) var crashes: [OncePoint: Int] = [:]

  /// Makes a total of nothing.
  package init() {}

  init(_ state: borrowing OnceLedger.State) {
    requests = state.requests.count
    uses = state.requests.values.reduce(0) { $0 + $1.uses.count }
    runs = state.runs.count
    replays = state.replays
    crashes = state.crashed
  }

  /// Adds another one.
  package mutating func add(_ other: OnceTotal) {
    requests += other.requests
    uses += other.uses
    runs += other.runs
    replays += other.replays
    crashes.merge(other.crashes, uniquingKeysWith: +)
  }
}
