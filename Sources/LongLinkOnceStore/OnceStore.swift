// SPDX-License-Identifier: Apache-2.0

/// A store in which servers keep records of the requests that run once, with their answers.
///
/// Each request that runs once has a *record*, which is found by a scope, a message type and a key:
/// those of an `OnceToken`. A record is *running* from its `begin` until `complete` or `abandon`.
/// After `complete` it is *answered*, or *not kept* if there was no answer to keep; either way it
/// has *ended*. Its end is *unknown* when it was running, and the process that began it is gone, or
/// seems to be. Such a record has not ended: `complete` and `abandon` take it. The store decides
/// when a process is gone; the server does not tell it. If processes share a store, give each one a
/// number and a lease, and write the number into the record at `begin`: once the lease is over, the
/// end is unknown.
///
/// A record stays until its expiry (`OnceAttempt.expiry(at:)`) has passed, and a running one also
/// until it has ended, so that no process forgets what it still runs. A store never drops a record
/// earlier to make room: it answers `full` instead.
///
/// The functions are called from any thread, many at a time. Each is atomic: another call, of this
/// process or of another one that shares the store, comes before it or after it. Each of `begin`,
/// `complete` and `abandon` bears the token of the begin that it belongs to, so that one that is
/// late, or comes twice, changes nothing.
///
/// A call that throws may have had its effect or not, but must have none later. The server treats a
/// begin that throws as one that must not run, and abandons it; it calls `complete` and `abandon`
/// again until they return or the server stops; after the record's expiry, `complete` gets no
/// answer. It waits for a call for at most `OnceConfiguration.storeTimeout`. When a late begin
/// returns after all, the server abandons it. A late `complete` or `abandon` that fails is
/// repeated.
///
/// A store chooses its bounds. Without one for all anonymous scopes together
/// (`OnceScope.isAnonymous`), anyone can fill it.
///
/// An application can keep the records in its own database, beside what its handlers change there.
/// Each call of the server has a transaction of its own. Add a function such as
/// `complete(_:with:in:)`, which takes the database: a handler passes it to
/// `OnceContext.complete(with:code:_:)`, which gives it the token and the encoded answer. So the
/// effect and the record are there together or not at all. If the result is false, throw, so that
/// the transaction is undone. Afterwards the server calls `complete`, which finds that the record
/// has ended, and `begin` with the same token, which finds the answer. During the transaction,
/// `begin` must not wait for the row: it returns `running`.
///
/// The article "Writing a store" of LongLinkOnce says how, with PostgreSQL as the example.
/// `OnceStoreCheck` of LongLinkTesting checks a store; give it `restart:` if the store outlives its
/// process.
public protocol OnceStore: Sendable {
  /// Returns the store's name and the time of its clock now.
  ///
  /// A server calls it when it starts, after a begin that found `otherName` or `outOfTime`, and for
  /// requests whose space is of another name than it knows, up to ten times a second. It counts on
  /// in between. So `begin` compares the name, and reads the clock, by itself.
  func status() async throws -> OnceStoreStatus

  /// Finds the record of `attempt.token`, or makes one that is running and bears this token.
  ///
  /// The cases are checked in this order, and the first that holds is returned:
  ///
  /// 1. `attempt.storeName` is not the store's name now: `otherName`.
  /// 2. There is a record of this scope, type and key whose expiry has not passed, or which is
  ///    running. With another fingerprint: `otherFingerprint`. Else by its state: `running`,
  ///    `answered`, `notKept` or `unknown`. A record whose end is unknown begins again if
  ///    `attempt.runsAgain` is true: it takes this token and expiry, is running, and the result is
  ///    `run` with the next number.
  /// 3. `attempt.isOutOfTime(at:)` at the store's time: `outOfTime`.
  /// 4. There is no room: `full`.
  /// 5. A new record, which is running: `run(number: 1)`.
  ///
  /// Read the clock after the record, or while no record can be removed. With an earlier time, a
  /// record could expire and be removed between the two, and its request run again.
  ///
  /// A begin that comes twice with one token finds its own record, as `running` or as it has ended.
  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding

  /// Ends the record that bears this token, and keeps the answer; nil if none is to be kept.
  ///
  /// Returns whether it did. It changes nothing and returns false if no record bears the token,
  /// because a later begin has taken its place or the record is gone, and if the record has ended
  /// already. A running record takes its answer even after its expiry. One whose end is unknown
  /// takes it too, at least until its expiry: the process was only slow. An answer for which there
  /// is no room is not kept, and the result is true.
  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool

  /// Removes the record that bears this token: it did not run, or may run again.
  ///
  /// Returns whether it did. It changes nothing and returns false if no record bears the token, or
  /// if the record has ended.
  func abandon(_ token: OnceToken) async throws -> Bool
}

/// The name and the clock of an `OnceStore`.
public struct OnceStoreStatus: Hashable, Sendable {
  /// The store's name: 1 to 255 bytes.
  ///
  /// It changes when records may have been lost: at each start of a store in memory; elsewhere
  /// after a start without data or with older data, and after a failover that may have lost some.
  /// Clients repeat a request that may have run only while the name stays the same. Servers that
  /// share a store see one name.
  public var name: [UInt8]
  /// The store's time in ms, from 1.
  ///
  /// It never goes back, neither when a system clock is set, nor at a start with the same name.
  /// Servers that share a store see one clock. It is compared only with itself, so it need not be
  /// the time of day.
  public var time: Int64

  /// Makes a status; the name has 1 to 255 bytes, and the time is at least 1.
  public init(name: [UInt8], time: Int64) {
    self.name = name
    self.time = time
  }
}
