// SPDX-License-Identifier: Apache-2.0

import LongLinkOnceStore
import Synchronization

/// A clock that tests set.
final class StoreTime: Sendable {
  private let time = Atomic<Int64>(1)

  func pass(_ duration: Duration) {
    time.add(Int64(duration / .milliseconds(1)), ordering: .relaxed)
  }

  func store(maxRecords: Int, maxBytes: Int = 64 << 20) -> MemoryOnceStore {
    MemoryOnceStore(maxRecords: maxRecords, maxBytes: maxBytes, name: [1, 2, 3]) {
      self.time.load(ordering: .relaxed)
    }
  }
}

/// A store that is right but for one fault.
final class FaultyStore: OnceStore {
  enum Fault: CaseIterable {
    case runsTwice, forgetsFingerprint, forgetsTime, ignoresName, completesTwice, abandonsAnswers
    case changesAnswers, forgetsTypes, clockGoesBack
  }

  let store: MemoryOnceStore
  let fault: Fault

  init(_ store: MemoryOnceStore, _ fault: Fault) {
    self.store = store
    self.fault = fault
  }

  private let asked = Mutex(Int64(0))

  func status() async throws -> OnceStoreStatus {
    var status = await store.status()
    if fault == .clockGoesBack {
      status.time += asked.withLock {
        $0 += 1
        return 1_000_000 - $0
      }
    }
    return status
  }

  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding {
    var attempt = attempt
    if fault == .forgetsTypes { attempt.token = changed(attempt.token) }
    if fault == .ignoresName { attempt.storeName = await store.status().name }
    if fault == .forgetsFingerprint { attempt.fingerprint = OnceFingerprint(1, 1, 1, 1) }
    if fault == .forgetsTime { attempt.keyTime = await store.status().time }
    let finding = await store.begin(attempt)
    switch (fault, finding) {
    case (.runsTwice, .running): return .run(number: 1)
    case (.changesAnswers, .answered(let answer)):
      return .answered(OnceAnswer(code: answer.code, body: answer.body.dropLast()))
    default: return finding
    }
  }

  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool {
    let token = fault == .forgetsTypes ? changed(token) : token
    let isDone = await store.complete(token, with: answer)
    return isDone || fault == .completesTwice
  }

  func abandon(_ token: OnceToken) async throws -> Bool {
    let token = fault == .forgetsTypes ? changed(token) : token
    let isDone = await store.abandon(token)
    return isDone || fault == .abandonsAnswers
  }

  private func changed(_ token: OnceToken) -> OnceToken {
    OnceToken(scope: token.scope, type: 1, key: token.key, number: token.number)
  }
}
