// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkScenarios
import Synchronization

/// Runs many scenarios, several at once on separate threads, up to the first broken promise.
final class ScenarioBatch: Sendable {
  private struct State {
    var next: UInt64?
    var total = ScenarioTotal()
    var error: (any Error)?
    var working = 0
    var isDone: CheckedContinuation<Void, Never>?
  }

  private let seeds: ClosedRange<UInt64>
  private let profile: FaultProfile
  private let security: ScenarioSecurity?
  private let keepsGoing: Bool
  private let state: Mutex<State>
  private let start = ContinuousClock.now

  init(
    seeds: ClosedRange<UInt64>, profile: FaultProfile, security: ScenarioSecurity?,
    keepsGoing: Bool
  ) {
    self.seeds = seeds
    self.security = security
    self.keepsGoing = keepsGoing
    self.profile = profile
    state = Mutex(State(next: seeds.lowerBound))
  }

  /// Runs all scenarios, and shows the progress once a second. When the task is cancelled, no
  /// further scenarios start.
  func run(
    jobs: Int, showing show: @escaping @Sendable (ScenarioTotal) -> Void
  ) async -> Result<ScenarioTotal, any Error> {
    let progress = Task { [self] in
      while (try? await Task.sleep(for: .seconds(1))) != nil { show(total) }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        state.withLock { state in
          state.working = jobs
          state.isDone = continuation
        }
        for _ in 0..<jobs { startThread() }
      }
    } onCancel: {
      state.withLock { $0.next = nil }
    }
    progress.cancel()
    await progress.value
    if let error = state.withLock({ $0.error }) { return .failure(error) }
    return .success(total)
  }

  private func startThread() {
    let thread = Thread { [self] in
      work()
      let done = state.withLock { state in
        state.working -= 1
        return state.working == 0 ? state.isDone : nil
      }
      done?.resume()
    }
    // The tasks of a scenario, with the user's code, run on the thread's stack.
    thread.stackSize = 8 << 20
    thread.start()
  }

  private var total: ScenarioTotal {
    var total = state.withLock { $0.total }
    total.realTime = ContinuousClock.now - start
    return total
  }

  /// Runs one seed after another until none is left, or one has failed.
  private func work() {
    while let seed = take() {
      do {
        let report = try Scenario(seed: seed, profile: profile)
          .runBlocking(security: security)
        state.withLock { state in
          state.total.add(report)
          if !report.isGood, !keepsGoing { state.next = nil }
        }
      } catch {
        state.withLock { state in
          state.error = error
          state.next = nil
        }
      }
    }
  }

  private func take() -> UInt64? {
    state.withLock { state in
      guard let seed = state.next else { return nil }
      state.next = seed < seeds.upperBound ? seed + 1 : nil
      return seed
    }
  }
}

/// The combined results of scenarios.
struct ScenarioTotal: Sendable {
  var seeds = 0
  var requests = 0
  var succeeded = 0
  var streams = 0
  var completedStreams = 0
  var items = 0
  var once = OnceTotal()
  var virtualTime = Duration.zero
  var realTime = Duration.zero
  var faults: [FaultKind: Int] = [:]
  /// The exclusive or of all hashes, which does not depend on their order.
  var hash: UInt64 = 0
  /// Scenarios that broke a promise, sorted by seed.
  var failures: [ScenarioReport] = []

  mutating func add(_ report: ScenarioReport) {
    seeds += 1
    requests += report.requests
    succeeded += report.succeeded
    streams += report.streams
    completedStreams += report.completedStreams
    items += report.items
    once.add(report.once)
    virtualTime += report.virtualTime
    faults.merge(report.faults, uniquingKeysWith: +)
    hash ^= report.traceHash
    guard !report.isGood else { return }
    failures.append(report)
    failures.sort { $0.scenario.seed < $1.scenario.seed }
  }

  /// Seeds and virtual hours per second of real time.
  var speed: String {
    let seconds = max(realTime / .seconds(1), 0.001)
    let hours = virtualTime / .seconds(3_600) / seconds
    return String(format: "%.1f seeds/s  %.1f virtual hours/s", Double(seeds) / seconds, hours)
  }

  var faultsText: String { faults.text }

  var hashText: String { String(format: "%016llx", hash) }

  var summary: String {
    let broken = failures.map { String($0.scenario.seed) }.joined(separator: ", ")
    let outcome =
      failures.isEmpty ? "all promises were kept" : "promises were broken by seeds \(broken)"
    return """
      \(seeds) seeds in \(realTime.inSeconds), \(speed): \(outcome)
      \(requests.grouped) requests, \(succeeded.grouped) succeeded, \
      \(String(format: "%.1f", virtualTime / .seconds(3_600))) virtual hours, trace \(hashText)
      \(streams.grouped) streams among them, \(completedStreams.grouped) read to their end, \
      \(items.grouped) items read\(onceText)
      \(faults.lines.joined(separator: "\n"))
      """
  }

  /// What happened to requests that run once; empty if there were none.
  private var onceText: String {
    guard once.requests > 0 else { return "" }
    let crashes = OncePoint.allCases.map { "\(once.crashes[$0, default: 0].grouped) at the \($0)" }
    return """

      \(once.requests.grouped) requests that run once, made \(once.uses.grouped) times, ran \
      \(once.runs.grouped) times, \(once.replays.grouped) replays
      crashes of them: \(crashes.joined(separator: ", "))
      """
  }

  func json(profile: String) -> String {
    var object: [String: Any] = [
      "profile": profile, "seeds": seeds, "requests": requests, "succeeded": succeeded,
      "streams": streams, "completedStreams": completedStreams, "items": items,
      "once": [
        "requests": once.requests, "uses": once.uses, "runs": once.runs, "replays": once.replays,
        "crashes": Dictionary(uniqueKeysWithValues: once.crashes.map { ("\($0.key)", $0.value) }),
      ] as [String: Any],
      "virtualSeconds": virtualTime / .seconds(1), "realSeconds": realTime / .seconds(1),
      "traceHash": hashText,
      "faults": Dictionary(uniqueKeysWithValues: faults.map { ($0.key.rawValue, $0.value) }),
    ]
    object["failures"] = failures.map { failure in
      [
        "seed": failure.scenario.seed, "replay": failure.replayCommand,
        "findings": failure.findings.map { ["promise": $0.promise.rawValue, "detail": "\($0)"] },
      ]
    }
    let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
    return data.map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}
