// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A store of requests that run once, in the memory of the process.
///
/// Requests run at most once as long as the process runs. Each store has a new name, so that after
/// a restart clients do not repeat what may have run before. Several servers of one process can
/// share a store.
///
/// The records of one scope take at most a quarter of the room, and so do those of all clients
/// without a principal together. A begin for which there is no room is refused; no record is
/// dropped before its expiry. Expired records are removed a few at a time, by later begins; the
/// store uses their memory again, and does not give it back.
public final class MemoryOnceStore: OnceStore {
  private let name: [UInt8]
  private let clock: @Sendable () -> Int64
  private let state: Mutex<OnceRecords>

  /// Makes a store without records. It traps if `maxRecords` or `maxBytes` is too small.
  ///
  /// - Parameters:
  ///   - maxRecords: The most records, at least 4. Default: 100,000.
  ///   - maxBytes: The most bytes of all records and their scopes; at least 4,096. Default: 64 MiB.
  ///     With an answer of 64 bytes and a key of 16 a record takes 248, and a scope with records
  ///     its own bytes and at most 200 more.
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
      Int64(start.duration(to: clock.now) / .milliseconds(1)) + 1
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

/// The same at once.
extension MemoryOnceStore {
  package func beginNow(_ attempt: OnceAttempt) -> OnceFinding {
    guard attempt.storeName == name else { return .otherName }
    return beginNow(OnceBegin(attempt), at: OncePlace(attempt.token)).0
  }

  package func completeNow(_ token: OnceToken, with answer: OnceAnswer?) -> Bool {
    let place = OncePlace(token)
    return state.withLock { state in
      guard let index = state.index(of: place) else { return false }
      return state.complete(token.number, at: index, with: answer)
    }
  }

  package func abandonNow(_ token: OnceToken) -> Bool {
    let place = OncePlace(token)
    return state.withLock { state in
      guard let index = state.index(of: place) else { return false }
      return state.abandon(token.number, at: index)
    }
  }

  /// Notes that the run will not be ended any more. Its record stays, with an unknown end.
  package func loseNow(_ token: OnceToken) {
    let place = OncePlace(token)
    state.withLock { state in
      if let index = state.index(of: place) { state.lose(token.number, at: index) }
    }
  }
}

/// The same for a server that has the store in its process. It passes on what it knows, and has
/// compared the store's name, which does not change, by the space of the request.
extension MemoryOnceStore {
  package var statusNow: OnceStoreStatus { OnceStoreStatus(name: name, time: clock()) }

  /// Finds a record, or makes one. Also returns where it is, for the functions that end it; any
  /// number without one.
  package func beginNow(_ begin: OnceBegin, at place: OncePlace) -> (OnceFinding, UInt32) {
    let now = clock()
    return state.withLock { $0.begin(begin, at: place, now) }
  }

  /// What `beginNow` would find, if the request would not run; else nil. Nothing begins.
  package func find(_ begin: OnceBegin, at place: OncePlace) -> OnceFinding? {
    let now = clock()
    return state.withLock { $0.find(begin, at: place, now) }
  }

  package func completeNow(
    _ number: Int64, at index: UInt32, with answer: OnceAnswer?
  ) -> Bool {
    state.withLock { $0.complete(number, at: index, with: answer) }
  }

  package func abandonNow(_ number: Int64, at index: UInt32) -> Bool {
    state.withLock { $0.abandon(number, at: index) }
  }
}

extension OnceStore where Self == MemoryOnceStore {
  /// Returns a new store in the memory of the process at each call, for at most 100,000 records and
  /// 64 MiB.
  public static func memory() -> MemoryOnceStore { MemoryOnceStore() }
}
