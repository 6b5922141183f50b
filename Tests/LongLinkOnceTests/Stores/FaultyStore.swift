// SPDX-License-Identifier: Apache-2.0

import LongLinkOnceStore
import Synchronization

/// A store that is right but for one fault, and outlives its process.
final class FaultyStore: OnceStore {
  enum Fault: CaseIterable {
    case none
    case runsTwice, forgetsFingerprint, forgetsTime, ignoresName, completesTwice, abandonsAnswers
    case changesAnswers, forgetsTypes, clockGoesBack, ignoresCase, looksAtTimeFirst
    // At a restart.
    case newName, forgetsFingerprintOfUnknown, keepsExpiryOfUnknown, keepsUnknown, takenOverTwice
  }

  private struct State {
    var asked: Int64 = 0
    /// The attempts that run, by their keys.
    var running: [[UInt8]: OnceAttempt] = [:]
    /// Those that ran at the restart.
    var lost: [[UInt8]: OnceAttempt] = [:]
    var restarts: UInt8 = 0
  }

  private let store: MemoryOnceStore
  private let fault: Fault
  private let state = Mutex(State())

  init(_ store: MemoryOnceStore, _ fault: Fault) {
    self.store = store
    self.fault = fault
  }

  /// Ends the process, and begins the next one.
  func restart() {
    let lost = state.withLock { state in
      state.lost = state.running
      state.running = [:]
      state.restarts += 1
      return state.lost.values
    }
    for attempt in lost { store.loseNow(changed(attempt.token)) }
  }

  func status() async throws -> OnceStoreStatus {
    var status = store.statusNow
    let (asked, restarts) = state.withLock { state in
      state.asked += 1
      return (state.asked, state.restarts)
    }
    if fault == .clockGoesBack { status.time += 1_000_000 - asked }
    if fault == .newName, restarts > 0 { status.name.append(restarts) }
    return status
  }

  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding {
    let lost = state.withLock { $0.lost[attempt.token.key] }
    let now = store.statusNow
    if fault == .looksAtTimeFirst, attempt.isOutOfTime(at: now.time) { return .outOfTime }
    var asked = attempt
    asked.token = changed(attempt.token)
    if fault == .ignoresName { asked.storeName = now.name }
    if fault == .newName, try await status().name == attempt.storeName {
      asked.storeName = now.name
    }
    if fault == .forgetsFingerprint { asked.fingerprint = OnceFingerprint(1, 1, 1, 1) }
    if fault == .forgetsTime { asked.keyTime = now.time }
    if let lost, attempt.runsAgain {
      if fault == .forgetsFingerprintOfUnknown { asked.fingerprint = lost.fingerprint }
      if fault == .keepsExpiryOfUnknown { asked.retention = lost.retention }
    }
    let finding = store.beginNow(asked)
    switch (fault, finding) {
    case (.runsTwice, .running): return .run(number: 1)
    case (.takenOverTwice, .running) where lost != nil && attempt.runsAgain: return .run(number: 2)
    case (.keepsUnknown, .run(number: 1)) where lost != nil: return .unknown
    case (.changesAnswers, .answered(let answer)):
      return .answered(OnceAnswer(code: answer.code, body: answer.body.dropLast()))
    case (_, .run): state.withLock { $0.running[attempt.token.key] = attempt }
    default: break
    }
    return finding
  }

  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool {
    let isDone = store.completeNow(changed(token), with: answer)
    if isDone { ends(token) }
    return isDone || fault == .completesTwice
  }

  func abandon(_ token: OnceToken) async throws -> Bool {
    let isDone = store.abandonNow(changed(token))
    if isDone { ends(token) }
    return isDone || fault == .abandonsAnswers
  }

  private func ends(_ token: OnceToken) { state.withLock { $0.running[token.key] = nil } }

  private func changed(_ token: OnceToken) -> OnceToken {
    var key = token.key
    if fault == .ignoresCase {
      key = key.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
    }
    return OnceToken(
      scope: token.scope, type: fault == .forgetsTypes ? 1 : token.type, key: key,
      number: token.number)
  }
}
