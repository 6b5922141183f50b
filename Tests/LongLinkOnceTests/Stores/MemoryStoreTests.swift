// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkOnceStore
import LongLinkTesting
import Synchronization
import Testing

struct MemoryStoreTests {
  @Test func `the store keeps what a server relies on`() async throws {
    let time = StoreTime()
    let check = OnceStoreCheck(pass: { time.pass($0) }) { time.store(maxRecords: 1_000) }
    #expect(try await check.findings() == [])
  }

  @Test func `a store has a name of its own at each start`() async {
    #expect(await MemoryOnceStore().status().name != MemoryOnceStore().status().name)
  }

  @Test func `the bytes of a scope make it again, also without a name`() {
    for scope in [OnceScope(principal: ""), OnceScope(principal: "a"), OnceScope(clientHash: [7])] {
      #expect(OnceScope(bytes: scope.bytes) == scope)
    }
    for bytes: [UInt8] in [[], [0x63], [0x78, 1]] { #expect(OnceScope(bytes: bytes) == nil) }
  }

  @Test func `the default clock begins at one and goes on`() async {
    let store = MemoryOnceStore()
    #expect(store.statusNow.time >= 1)
    #expect(store.statusNow.time < 60_000)
  }

  @Test func `the check finds a store that runs twice, forgets or mixes up`() async throws {
    for fault in FaultyStore.Fault.allCases {
      let time = StoreTime()
      let check = OnceStoreCheck(
        pass: { time.pass($0) },
        restart: { store in
          (store as? FaultyStore)?.restart()
          return store
        }
      ) {
        FaultyStore(time.store(maxRecords: 1_000), fault)
      }
      #expect(try await check.findings().isEmpty == (fault == .none), "\(fault)")
    }
  }
}

/// How much a store keeps, and for whom.
struct MemoryStoreBoundTests {
  let time = StoreTime()

  private func begin(
    _ store: MemoryOnceStore, _ scope: OnceScope, _ key: Int, retention: Int64 = 1_000
  ) -> OnceFinding {
    let status = store.statusNow
    return store.beginNow(
      OnceAttempt(
        token: token(scope, key), fingerprint: OnceFingerprint(1, 2, 3, 4), keyTime: status.time,
        retention: retention, storeName: status.name))
  }

  private func token(_ scope: OnceScope, _ key: Int) -> OnceToken {
    OnceToken(scope: scope, type: 1, key: Array("key 16: \(10_000_000 + key)".utf8), number: 1)
  }

  private func stranger(_ number: Int) -> OnceScope {
    OnceScope(clientHash: [UInt8](repeating: 7, count: 24) + "\(10_000_000 + number)".utf8)
  }

  @Test func `strangers fill a quarter, and principals keep their room`() {
    let store = time.store(maxRecords: 1_000)
    for number in 0..<250 { #expect(begin(store, stranger(number), 1) == .run(number: 1)) }
    for number in 250..<1_000 { #expect(begin(store, stranger(number), 1) == .full) }
    for name in ["a", "b", "c"] {
      for key in 0..<250 {
        #expect(begin(store, OnceScope(principal: name), key) == .run(number: 1))
      }
      #expect(begin(store, OnceScope(principal: name), 250) == .full)
    }
    #expect(begin(store, OnceScope(principal: "d"), 0) == .full)
    #expect(store.recordCount == 1_000)
    // What is there is found all the same.
    #expect(begin(store, stranger(0), 1) == .running)
  }

  @Test func `there is room again when records expire, and none is dropped before`() {
    let store = time.store(maxRecords: 1_000)
    for number in 0..<250 {
      #expect(begin(store, stranger(number), 1) == .run(number: 1))
      #expect(store.completeNow(token(stranger(number), 1), with: nil))
      time.pass(.milliseconds(1))
    }
    time.pass(.milliseconds(749))
    #expect(begin(store, stranger(1_000), 1) == .full)
    time.pass(.milliseconds(1))
    #expect(begin(store, stranger(1_000), 1) == .run(number: 1))
    time.pass(.seconds(2))
    for number in 0..<250 { _ = begin(store, stranger(2_000 + number), 1) }
    // The one that runs stays.
    #expect(store.recordCount == 251 - 1)
    #expect(begin(store, stranger(1_000), 1) == .running)
  }

  @Test func `records whose time is ahead keep nobody else's from expiring`() {
    let store = time.store(maxRecords: 1_000)
    let status = store.statusNow
    for key in 0..<200 {
      let attempt = OnceAttempt(
        token: token(stranger(0), key), fingerprint: OnceFingerprint(1, 2, 3, 4),
        keyTime: status.time + 999, retention: 1_000, storeName: status.name)
      #expect(store.beginNow(attempt) == .run(number: 1))
      #expect(store.completeNow(attempt.token, with: nil))
    }
    let principal = OnceScope(principal: "p")
    for key in 0..<250 {
      #expect(begin(store, principal, key) == .run(number: 1))
      #expect(store.completeNow(token(principal, key), with: nil))
    }
    time.pass(.milliseconds(1_500))
    for key in 250..<500 { #expect(begin(store, principal, key) == .run(number: 1)) }
  }

  @Test func `an answer keeps no more memory than its bytes`() async {
    let store = time.store(maxRecords: 1_000)
    let scope = OnceScope(principal: "p")
    #expect(begin(store, scope, 1) == .run(number: 1))
    // As in an array that had the metadata of its request before it.
    var body = [UInt8](repeating: 1, count: 65_000)
    body.removeFirst(64_999)
    #expect(body.capacity >= 64_000)
    #expect(store.completeNow(token(scope, 1), with: OnceAnswer(code: .ok, body: body)))
    guard case .answered(let answer) = begin(store, scope, 1) else {
      Issue.record("the answer is not kept")
      return
    }
    #expect(answer.body == [1] && answer.body.capacity < 256)
  }

  @Test func `an answer takes the room of expired records`() {
    let store = time.store(maxRecords: 1_000, maxBytes: 40_000)
    let scope = OnceScope(principal: "p")
    let answer = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 1_000))
    for key in 1...8 {
      #expect(begin(store, scope, key) == .run(number: 1))
      #expect(store.completeNow(token(scope, key), with: answer))
      #expect(begin(store, scope, key) == .answered(answer))
    }
    time.pass(.milliseconds(1_500))
    // This begin removes none, and the answer of its request finds no room.
    #expect(begin(store, scope, 9) == .run(number: 1))
    #expect(store.byteCount > 9_700)
    #expect(store.completeNow(token(scope, 9), with: answer))
    #expect(begin(store, scope, 9) == .answered(answer))
    #expect(store.recordCount == 1)
  }

  @Test func `an answer without room is not kept, and the record is`() {
    let store = time.store(maxRecords: 1_000, maxBytes: 40_000)
    let scope = OnceScope(principal: "p")
    #expect(begin(store, scope, 1) == .run(number: 1))
    let answer = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 10_000))
    #expect(store.completeNow(token(scope, 1), with: answer))
    #expect(begin(store, scope, 1) == .notKept)
    #expect(begin(store, scope, 2) == .run(number: 1))
  }

  @Test func `a record of an answer of 64 bytes is within 256 bytes`() {
    let store = time.store(maxRecords: 100_000, maxBytes: 1_000 * 256 * 4)
    let scope = OnceScope(principal: "p")
    let answer = OnceAnswer(code: .ok, body: [UInt8](repeating: 1, count: 64))
    for key in 0..<1_000 {
      #expect(begin(store, scope, key) == .run(number: 1))
      #expect(store.completeNow(token(scope, key), with: answer))
    }
    for key in 0..<1_000 { #expect(begin(store, scope, key) == .answered(answer)) }
    #expect(store.byteCount / 1_000 <= 256)
  }

  @Test func `the name of a scope counts, once for all of its records`() {
    let store = time.store(maxRecords: 100_000)
    let scopes = (0..<1_000).map { number in
      OnceScope(principal: String(repeating: "p", count: 250) + "\(1_000 + number)")
    }
    for scope in scopes { #expect(begin(store, scope, 1) == .run(number: 1)) }
    let first = store.byteCount
    #expect(first >= 1_000 * (255 + 120))
    for scope in scopes { #expect(begin(store, scope, 2) == .run(number: 1)) }
    #expect(store.byteCount - first < 1_000 * 200)
    for scope in scopes {
      for key in [1, 2] { #expect(store.abandonNow(token(scope, key))) }
    }
    #expect(store.byteCount == 0)
    // Many names fill the room, although each has one record.
    let small = time.store(maxRecords: 100_000, maxBytes: 400_000)
    let begun = scopes.prefix { begin(small, $0, 1) == .run(number: 1) }
    #expect(begun.count < 1_000)
  }

  /// The table moves entries when others leave; a model says what must be found.
  @Test func `records are found among many that come and go`() {
    let store = time.store(maxRecords: 40_000)
    var generator = SeededGenerator(seed: 7)
    var model: [Int: Bool] = [:]
    let scope = OnceScope(principal: "p")
    for _ in 0..<60_000 {
      let key = Int(generator.next() % 3_000)
      switch generator.next() % 3 {
      case 0:
        let wanted: OnceFinding =
          model[key].map { $0 ? .notKept : .running } ?? .run(number: 1)
        #expect(begin(store, scope, key, retention: 1_000_000) == wanted)
        if model[key] == nil { model[key] = false }
      case 1:
        #expect(store.abandonNow(token(scope, key)) == (model[key] == false))
        if model[key] == false { model[key] = nil }
      default:
        guard generator.next() % 8 == 0 else { continue }
        #expect(store.completeNow(token(scope, key), with: nil) == (model[key] == false))
        if model[key] == false { model[key] = true }
      }
      #expect(store.recordCount == model.count)
    }
  }

  @Test func `what nobody will end is unknown, and may run again where that is allowed`() {
    let store = time.store(maxRecords: 1_000)
    let scope = OnceScope(principal: "p")
    #expect(begin(store, scope, 1) == .run(number: 1))
    store.loseNow(token(scope, 1))
    #expect(begin(store, scope, 1) == .unknown)
    let status = store.statusNow
    var attempt = OnceAttempt(
      token: OnceToken(scope: scope, type: 1, key: token(scope, 1).key, number: 2),
      fingerprint: OnceFingerprint(1, 2, 3, 4), keyTime: status.time, retention: 1_000,
      storeName: status.name, runsAgain: true)
    #expect(store.beginNow(attempt) == .run(number: 2))
    #expect(!store.completeNow(token(scope, 1), with: nil))
    store.loseNow(attempt.token)
    attempt.token = OnceToken(scope: scope, type: 1, key: token(scope, 1).key, number: 3)
    #expect(store.beginNow(attempt) == .run(number: 3))
  }
}
