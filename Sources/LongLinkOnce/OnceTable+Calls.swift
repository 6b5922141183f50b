// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
internal import LongLinkServer
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

// The calls of a store that has to be waited for, and what is counted.

extension OnceTable {
  /// The most calls that the store has not answered: with more, no begin is asked for. A slow store
  /// has them, each with a request that waits.
  static let mostCalls = 4_096
  /// The most calls that are late, or have failed and are repeated: with more, no begin is asked
  /// for.
  static let mostLateCalls = 1_024

  /// Whether the store may be asked for a begin.
  var mayAsk: Bool {
    calls.load(ordering: .relaxed) < Self.mostCalls
      && lateCalls.load(ordering: .relaxed) < Self.mostLateCalls
  }

  /// Begins a call of the store; on the loop.
  func call<Value: Sendable>(
    on loop: EventLoop, _ body: @escaping @Sendable () async throws -> Value,
    then: @escaping (StoreCall<Value>.Outcome) -> Void
  ) {
    calls.add(1, ordering: .relaxed)
    StoreCall.begin(on: loop, within: storeTimeout, body) { [self] outcome in
      switch outcome {
      case .returned: calls.subtract(1, ordering: .relaxed)
      case .late: lateCalls.add(1, ordering: .relaxed)
      case .returnedLate:
        calls.subtract(1, ordering: .relaxed)
        lateCalls.subtract(1, ordering: .relaxed)
      }
      then(outcome)
    }
  }

  /// Logs that the store has failed. Once the server has stopped, the store may be closed: the
  /// handlers that still run then are counted in `onceCutOff`.
  func failed(_ call: StaticString, _ error: (any Error)?, at now: LinkInstant) {
    guard !isStopped.load(ordering: .acquiring) else { return }
    log.log(.error, "The store of records has failed", kind: .name("\(call)"), at: now) {
      ["call": "\(call)", "error": "\(PeerText(error.map { "\($0)" } ?? "no answer in time"))"]
    }
  }

  func unfinished(on loop: EventLoop) -> [String] {
    Self.sorted(state.withLock { Array($0.runs.values) }).compactMap { run in
      guard run.loop === loop else { return nil }
      return run.state.withLock { $0.isCalled ? $0.runner : nil }?.unfinishedWithoutLink
    }
  }

  func count(in counters: inout ServerCounters) {
    for outcome in OnceOutcome.allCases {
      let number = outcomes[outcome]
      if number > 0 { counters.onceRequests["\(outcome)"] = number }
    }
    counters.onceDetached = detached.count
    guard let memory else { return }
    counters.onceRecords = memory.recordCount
    counters.onceBytes = memory.byteCount
  }
}

/// How often each outcome has come.
final class OnceOutcomes: Sendable {
  private let numbers = Mutex([UInt64](repeating: 0, count: OnceOutcome.allCases.count))
  private let runs = Atomic<UInt64>(0)

  subscript(outcome: OnceOutcome) -> UInt64 {
    outcome == .run
      ? runs.load(ordering: .relaxed) : numbers.withLock { $0[outcome.rawValue] }
  }

  func count(_ outcome: OnceOutcome) {
    // Nearly all of them run.
    if outcome == .run {
      runs.add(1, ordering: .relaxed)
    } else {
      numbers.withLock { $0[outcome.rawValue] += 1 }
    }
  }
}
