// SPDX-License-Identifier: Apache-2.0

public import LongLinkOnceStore

/// A check of an `OnceStore` of your own: it calls the store, and compares the results with what a
/// server relies on.
///
/// It does not check the finding `full`, two processes that share the store, transactions of the
/// application, or a clock when the system's time is set. Test these yourself if your store has
/// them.
///
/// This is a test of a store. Leave `restart` out if the store does not outlive its process:
///
/// ```swift
/// @Test func `the store keeps what a server relies on`() async throws {
///   let check = OnceStoreCheck(
///     restart: { old in
///       let old = old as! MyStore
///       try await old.kill()
///       return try await MyStore(in: old.folder)
///     }
///   ) {
///     try await MyStore(in: temporaryFolder())
///   }
///   #expect(try await check.findings() == [])
/// }
/// ```
///
/// The store needs room for 100 records and for an answer of 65,536 bytes.
public struct OnceStoreCheck: Sendable {
  let make: @Sendable () async throws -> any OnceStore
  let restart: (@Sendable (any OnceStore) async throws -> any OnceStore)?
  let retention: Int64
  let pass: @Sendable (Duration) async throws -> Void

  /// Makes a check.
  ///
  /// - Parameters:
  ///   - retention: The retention of most of the records, at least 1 ms. The check waits for it to
  ///     pass several times, and a store must not need so long for one call. Default: 500 ms.
  ///   - pass: Lets time pass for the store's clock. Default: `Task.sleep`.
  ///   - restart: Lets the process of a lasting store end while records are running, and returns
  ///     the store as the next process opens it, with its records and its name. With leases, it
  ///     must return only once the lease of the old process is over. It gets the store that `make`
  ///     has made. Default nil: the store does not outlive its process.
  ///   - make: Makes a store without records. It is called for each part of the check.
  public init(
    retention: Duration = .milliseconds(500),
    pass: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    restart: (@Sendable (any OnceStore) async throws -> any OnceStore)? = nil,
    _ make: @escaping @Sendable () async throws -> any OnceStore
  ) {
    self.retention = max(1, Int64(retention / .milliseconds(1)))
    self.pass = pass
    self.restart = restart
    self.make = make
  }

  /// Runs the check, and returns a description of each mistake: what the store did, and what it
  /// should have done. The array is empty if the store is right.
  ///
  /// An error that the store or one of the closures throws ends the check, and is thrown.
  public func findings() async throws -> [String] {
    var findings: [String] = []
    for part in parts {
      let trial = OnceTrial(try await make(), retention: retention, pass: pass)
      try await part(trial)
      findings += trial.findings
    }
    return findings
  }

  private var parts: [(OnceTrial) async throws -> Void] {
    var parts: [(OnceTrial) async throws -> Void] = [
      { try await $0.hasNameAndClock() }, { try await $0.runsOnce() },
      { try await $0.keepsAnswers() }, { try await $0.abandons() },
      { try await $0.tellsRecordsApart() }, { try await $0.refusesOtherNames() },
      { try await $0.refusesOtherTimes() }, { try await $0.expires() },
      { try await $0.keepsWhatRuns() }, { try await $0.keepsUntilKeyTime() },
      { try await $0.isAtomic() },
    ]
    if let restart { parts.append { try await $0.survives(restart) } }
    return parts
  }
}
