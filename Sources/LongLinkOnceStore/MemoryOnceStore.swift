// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A store of requests that run once, in the memory of the process.
///
/// It gives the promise as long as the process runs: its name is new at each start, so that clients
/// do not repeat what may have run before. Several servers of one process can share it.
///
/// The records of one scope take at most a quarter of the room, and so do those of all clients
/// without a principal together. A begin for which there is no room is refused; no record is
/// dropped before its expiry. Expired records are removed a few at a time, by later begins.
public final class MemoryOnceStore: OnceStore {
  private let name: [UInt8]
  private let clock: @Sendable () -> Int64
  private let state: Mutex<OnceRecords>

  /// Makes a store.
  ///
  /// - Parameters:
  ///   - maxRecords: The most records, at least 4. Default: 100,000.
  ///   - maxBytes: The most bytes of all records and their scopes; at least 4,096. Default: 64 MiB.
  ///     With an answer of 64 bytes and a key of 16 a record takes 248, and a scope with records
  ///     its own bytes and at most 184 more.
  ///   - clock: The clock. Give a simulation's clock to a server in a simulation. Default: the
  ///     system's, which also runs while the machine sleeps.
  public convenience init(
    maxRecords: Int = 100_000, maxBytes: Int = 64 << 20,
    clock: some Clock<Duration> = ContinuousClock()
  ) {
    let start = clock.now
    self.init(
      maxRecords: maxRecords, maxBytes: maxBytes,
      name: (0..<16).map { _ in UInt8.random(in: 0...255) }
    ) {
      let passed = start.duration(to: clock.now).components
      return passed.seconds * 1_000 + passed.attoseconds / 1_000_000_000_000_000 + 1
    }
  }

  package init(
    maxRecords: Int, maxBytes: Int, name: [UInt8], time: @escaping @Sendable () -> Int64
  ) {
    precondition(maxRecords >= 4, "a store has room for 4 records or more")
    precondition(maxBytes >= 4_096, "a store has room for 4,096 bytes or more")
    self.name = name
    clock = time
    state = Mutex(OnceRecords(most: OnceRoom(records: maxRecords, bytes: maxBytes)))
  }

  /// Returns the store's name, and its clock's time in milliseconds.
  public func status() async -> OnceStoreStatus { statusNow }

  /// Finds a record, or makes one, as `OnceStore` says.
  public func begin(_ attempt: OnceAttempt) async -> OnceFinding { beginNow(attempt) }

  /// Ends the record that bears the token, as `OnceStore` says.
  public func complete(_ token: OnceToken, with answer: OnceAnswer?) async -> Bool {
    completeNow(token, with: answer)
  }

  /// Removes the record that bears the token, as `OnceStore` says.
  public func abandon(_ token: OnceToken) async -> Bool { abandonNow(token) }

  /// The number of records, expired ones that are not removed yet included.
  public var recordCount: Int { state.withLock { $0.count } }

  /// The bytes that count against `maxBytes`.
  package var byteCount: Int { state.withLock { $0.byteCount } }
}

/// The same at once, for a server that has the store in its process. A caller that has the place of
/// the record passes it on.
extension MemoryOnceStore {
  package var statusNow: OnceStoreStatus { OnceStoreStatus(name: name, time: clock()) }

  package func beginNow(_ attempt: OnceAttempt, at place: OncePlace? = nil) -> OnceFinding {
    guard attempt.storeName == name else { return .otherName }
    // Outside the lock.
    let place = place ?? OncePlace(attempt.token)
    let now = clock()
    return state.withLock { $0.begin(attempt, at: place, now) }
  }

  /// What `beginNow` would find, if the request would not run; else nil. Nothing begins.
  package func find(_ attempt: OnceAttempt, at place: OncePlace? = nil) -> OnceFinding? {
    guard attempt.storeName == name else { return .otherName }
    let place = place ?? OncePlace(attempt.token)
    let now = clock()
    return state.withLock { $0.find(attempt, at: place, now) }
  }

  package func completeNow(
    _ token: OnceToken, with answer: OnceAnswer?, at place: OncePlace? = nil
  ) -> Bool {
    let place = place ?? OncePlace(token)
    return state.withLock { $0.complete(token, at: place, with: answer) }
  }

  package func abandonNow(_ token: OnceToken, at place: OncePlace? = nil) -> Bool {
    let place = place ?? OncePlace(token)
    return state.withLock { $0.abandon(token, at: place) }
  }

  /// Notes that nobody will end a run any more. Its record stays, with an unknown end.
  package func loseNow(_ token: OnceToken) {
    let place = OncePlace(token)
    state.withLock { $0.lose(token, at: place) }
  }
}

extension OnceStore where Self == MemoryOnceStore {
  /// A store in the memory of the process, with its default bounds.
  public static func memory() -> MemoryOnceStore { MemoryOnceStore() }
}
