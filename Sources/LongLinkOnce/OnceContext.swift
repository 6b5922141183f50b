// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver
public import LongLinkOnceStore
internal import Synchronization

extension InboundRequest {
  /// The record of this request, which the handler can complete; nil if it does not run once.
  public var once: OnceContext? { (onceRun as? Run).map { OnceContext($0) } }
}

/// The record of a request that runs once, as its handler sees it.
///
/// The server keeps what the handler returns. A handler whose effect is in a database can complete
/// the record in the same transaction instead, if the store keeps its records there: then both are
/// there or neither, whatever fails.
///
/// ```swift
/// guard let once = request.once else { throw Rejection(1_000, "use retry: .once") }
/// let reply = try await database.write { transaction in
///   let reply = try pay(payment, in: transaction)
///   try once.complete(with: reply) { token, answer in
///     try store.complete(token, with: answer, in: transaction)
///   }
///   return reply
/// }
/// ```
///
/// Once the transaction is committed, its answer is that of the request, whatever the handler
/// returns or throws. If the transaction was undone, what the handler returns or throws is the
/// answer. A handler may repeat its transaction, and complete the record in each attempt.
public struct OnceContext: Sendable {
  private let run: Run

  init(_ run: Run) {
    self.run = run
  }

  /// The token of this run, which `OnceStore.complete` takes.
  public var token: OnceToken { run.token }
  /// The scope of the request's key: a principal, or a client without one.
  public var scope: OnceScope { run.client.scope }
  /// The key under which the request runs once: 1 to 255 bytes.
  public var key: [UInt8] { run.metadata.idempotencyKey }
  /// The SHA-256 of the request's payload.
  public var fingerprint: OnceFingerprint { run.begin.fingerprint }
  /// The number of this run of the request: 1, or larger if earlier runs have an unknown end and
  /// the route runs such requests again (`OnceUnknownEnd.runAgain`).
  public var attempt: Int { run.state.withLock { $0.number } }

  /// Completes the record with the body of a response, within a transaction of the caller's.
  ///
  /// `keep` gets the token and the encoded answer, and returns what the store's `complete` does:
  /// false if the record is not that of this run any more. Then this throws `OnceOutdated`; let it
  /// end the transaction. Throws what `keep` throws, `BodyError` if the body cannot be encoded, and
  /// `LongLinkError` with `tooLarge` if it has more than `maxKeptResponse` bytes.
  public func complete(
    with body: some BodyEncodable, code: ResponseCode = .ok,
    _ keep: (OnceToken, OnceAnswer) throws -> Bool
  ) throws {
    let answer = try answer(code, body)
    guard try keep(token, answer) else { throw OnceOutdated() }
    run.state.withLock { $0.completed = answer }
  }

  /// Completes the record with the body of a response, within a transaction of the caller's whose
  /// functions are `async`.
  ///
  /// `keep` gets the token and the encoded answer, and returns what the store's `complete` does:
  /// false if the record is not that of this run any more. Then this throws `OnceOutdated`; let it
  /// end the transaction. Throws what `keep` throws, `BodyError` if the body cannot be encoded, and
  /// `LongLinkError` with `tooLarge` if it has more than `maxKeptResponse` bytes.
  public func complete(
    with body: some BodyEncodable, code: ResponseCode = .ok,
    _ keep: (OnceToken, OnceAnswer) async throws -> Bool
  ) async throws {
    let answer = try answer(code, body)
    guard try await keep(token, answer) else { throw OnceOutdated() }
    run.state.withLock { $0.completed = answer }
  }

  /// Completes the record with the body of a response, before the handler returns. It waits for the
  /// store for as long as that takes: `OnceConfiguration.storeTimeout` does not bound it.
  ///
  /// Throws `OnceOutdated` if the record is not that of this run any more, what the store throws,
  /// `BodyError` if the body cannot be encoded, and `LongLinkError` with `tooLarge` if it has more
  /// than `maxKeptResponse` bytes.
  public func complete(with body: some BodyEncodable, code: ResponseCode = .ok) async throws {
    let answer = try answer(code, body)
    guard try await run.table.store.complete(token, with: answer) else { throw OnceOutdated() }
    run.state.withLock { state in
      state.completed = answer
      state.isStored = true
    }
  }

  private func answer(_ code: ResponseCode, _ body: some BodyEncodable) throws -> OnceAnswer {
    let bytes = try body.encodedBytes()
    let most = run.table.maxKeptResponse
    guard bytes.count <= most else {
      throw LongLinkError(
        .tooLarge, doing: "complete a request that runs once",
        detail: "its response has \(bytes.count) bytes, more than `maxKeptResponse`, \(most)")
    }
    return OnceAnswer(code: code, body: bytes)
  }
}

/// Thrown when a handler completes a record that no longer belongs to its run: a later run has
/// taken the record over, or the record has ended or expired.
public struct OnceOutdated: Error, CustomStringConvertible {
  /// Makes the error.
  public init() {}

  /// What has happened.
  public var description: String {
    "the record is not that of this run any more: it has ended, expired, or begun again"
  }
}
