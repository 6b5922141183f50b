// SPDX-License-Identifier: Apache-2.0

internal import LongLinkOnceStore
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// A store of requests that run once, which outlives the processes of a simulation, as a database
/// does.
///
/// Each run of a process uses it through a ``StoreSession``, which has a number and a lease: the
/// store takes the end of what a run has begun for unknown once its lease is over.
final class LastingStore: Sendable {
  struct Place: Hashable {
    let scope: [UInt8]
    let type: UInt32
    let key: [UInt8]

    init(_ token: OnceToken) {
      (scope, type, key) = (token.scope.bytes, token.type.rawValue, token.key)
    }
  }

  enum Phase {
    case running
    case answered(OnceAnswer)
    case notKept
    case unknown
  }

  struct Record {
    var token: OnceToken
    var fingerprint: OnceFingerprint
    var expiry: Int64
    var runs: Int
    /// The number of the session that has begun it.
    var session: Int
    var phase = Phase.running

    var isOpen: Bool {
      switch phase {
      case .running, .unknown: true
      case .answered, .notKept: false
      }
    }
  }

  struct State {
    var records: [Place: Record] = [:]
    /// How often the records were lost: a part of the name.
    var losses = 0
    /// When the leases of sessions are over, in virtual time.
    var leases: [Int: LinkInstant] = [:]
    var clock = StoreClock()
    /// The calls that fail, are slow or come twice, in percent.
    var trouble = 0
    var dice: SeededGenerator
  }

  let label: String
  let lease: Duration
  private let maxRecords: Int
  private let simulation: Simulation
  private let state: Mutex<State>

  init(_ label: String, _ plan: OncePlan, _ dice: SeededGenerator, in simulation: Simulation) {
    self.label = label
    self.simulation = simulation
    lease = plan.lease
    maxRecords = plan.maxRecords
    state = Mutex(State(dice: dice))
  }

  /// Does something with the state, after what time alone has changed: leases, expiries, the clock.
  func use<Result>(_ body: (inout State) -> Result) -> Result {
    let now = simulation.now
    return state.withLock { state in
      state.clock.advance(to: now)
      let time = state.clock.time
      for place in state.records.keys {
        guard let record = state.records[place] else { continue }
        var phase = record.phase
        if case .running = phase {
          guard (state.leases[record.session] ?? LinkInstant(nanoseconds: 0)) <= now else {
            continue
          }
          phase = .unknown
          state.records[place]?.phase = .unknown
        }
        if record.expiry <= time { state.records[place] = nil }
      }
      return body(&state)
    }
  }

  /// Renews the lease of a session, whose earlier runs are not forgiven if it was over.
  func renew(_ session: Int) {
    use { $0.leases[session] = simulation.now.advanced(by: lease) }
  }

  /// The name and the time now.
  var status: OnceStoreStatus {
    use { OnceStoreStatus(name: name($0), time: $0.clock.time) }
  }

  private func name(_ state: State) -> [UInt8] { Array("\(label)-\(state.losses)".utf8) }

  // MARK: Faults

  /// Loses all records, as after a failover. The store has another name then.
  func lose() {
    use { state in
      state.records = [:]
      state.losses += 1
    }
  }

  /// The calls that fail, are slow or come twice: usually, and in a bad time.
  static let usualTrouble = 3
  static let muchTrouble = 60

  /// Lets `percent` of a hundred calls fail, be slow or come twice from now on.
  func setTrouble(_ percent: Int) { use { $0.trouble = percent } }

  /// Moves the store's clock, or changes how fast it goes. A clock that is set back stands still.
  func disturbClock(by time: Duration, rate: Int) {
    use { state in
      state.clock.offset += Int64(time / .milliseconds(1))
      state.clock.rate = Int64(rate)
    }
  }

  // MARK: What a store does

  func begin(_ attempt: OnceAttempt, by session: Int) -> OnceFinding {
    use { state in
      guard attempt.storeName == name(state) else { return .otherName }
      let place = Place(attempt.token)
      let time = state.clock.time
      var record = Record(
        token: attempt.token, fingerprint: attempt.fingerprint, expiry: attempt.expiry(at: time),
        runs: 1, session: session)
      if let found = state.records[place] {
        guard found.fingerprint == attempt.fingerprint else { return .otherFingerprint }
        switch found.phase {
        case .running: return .running
        case .answered(let answer): return .answered(answer)
        case .notKept: return .notKept
        case .unknown: if !attempt.runsAgain { return .unknown }
        }
        record.runs = found.runs + 1
      } else if attempt.isOutOfTime(at: time) {
        return .outOfTime
      } else if state.records.count >= maxRecords {
        return .full
      }
      state.records[place] = record
      return .run(number: record.runs)
    }
  }

  func complete(_ token: OnceToken, with answer: OnceAnswer?) -> Bool {
    end(token) { $0?.phase = answer.map { .answered($0) } ?? .notKept }
  }

  func abandon(_ token: OnceToken) -> Bool { end(token) { $0 = nil } }

  private func end(_ token: OnceToken, _ change: (inout Record?) -> Void) -> Bool {
    use { state in
      let place = Place(token)
      guard let record = state.records[place], record.isOpen, record.token == token else {
        return false
      }
      change(&state.records[place])
      return true
    }
  }
}

/// The clock of a store. It never goes back.
struct StoreClock {
  /// The time in ms.
  private(set) var time: Int64 = 1_000_000
  var offset: Int64 = 1_000_000
  /// How fast it goes, in percent.
  var rate: Int64 = 100
  private var last = LinkInstant(nanoseconds: 0)

  mutating func advance(to now: LinkInstant) {
    let passed = (now.nanoseconds - last.nanoseconds) / 1_000_000
    guard passed > 0 else { return }
    last = LinkInstant(nanoseconds: last.nanoseconds + passed * 1_000_000)
    offset += passed * rate / 100
    time = max(time, offset)
  }
}
