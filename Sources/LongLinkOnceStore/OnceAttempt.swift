// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The argument of `OnceStore.begin`: a request that a server is about to run, and the record that
/// it needs.
public struct OnceAttempt: Hashable, Sendable {
  /// The token of this begin: it says where the record is, and a record that begins now bears it.
  public var token: OnceToken
  /// The SHA-256 of the request's payload.
  public var fingerprint: OnceFingerprint
  /// When the client has first sent the request, by the store's clock in ms: at least 1. The client
  /// states it, so it may be wrong; at most a quarter of the largest `Int64`.
  public var keyTime: Int64
  /// For how long a record is kept, in ms: at least 1, at most the largest `UInt32`.
  public var retention: Int64
  /// The name of the store that the client's request is meant for: `OnceStoreStatus.name`.
  public var storeName: [UInt8]
  /// Whether a record whose end is unknown begins again. False unless the route says
  /// `OnceUnknownEnd.runAgain`.
  public var runsAgain: Bool

  /// Makes an attempt.
  public init(
    token: OnceToken, fingerprint: OnceFingerprint, keyTime: Int64, retention: Int64,
    storeName: [UInt8], runsAgain: Bool = false
  ) {
    self.token = token
    self.fingerprint = fingerprint
    self.keyTime = keyTime
    self.retention = retention
    self.storeName = storeName
    self.runsAgain = runsAgain
  }

  /// Returns whether an earlier record of the request may have expired by `time`, the store's time
  /// in ms: `keyTime` is a retention or more before it, or more than a retention after it. A new
  /// record must not begin then.
  public func isOutOfTime(at time: Int64) -> Bool { OnceBegin(self).isOutOfTime(at: time) }

  /// Returns the expiry of a record that begins at `time`, the store's time in ms: a retention
  /// after that or after `keyTime`, whichever is later. It has passed when the store's time is
  /// equal or later.
  public func expiry(at time: Int64) -> Int64 { OnceBegin(self).expiry(at: time) }
}

/// What an attempt says beside its place: all that a store in memory needs. A copy counts no
/// references.
package struct OnceBegin: Sendable {
  /// The number of the token.
  package let number: Int64
  package let fingerprint: OnceFingerprint
  package let keyTime: Int64
  package let retention: Int64
  package let runsAgain: Bool

  package init(
    number: Int64, fingerprint: OnceFingerprint, keyTime: Int64, retention: Int64, runsAgain: Bool
  ) {
    self.number = number
    self.fingerprint = fingerprint
    self.keyTime = keyTime
    self.retention = retention
    self.runsAgain = runsAgain
  }

  init(_ attempt: OnceAttempt) {
    self.init(
      number: attempt.token.number, fingerprint: attempt.fingerprint, keyTime: attempt.keyTime,
      retention: attempt.retention, runsAgain: attempt.runsAgain)
  }

  func isOutOfTime(at time: Int64) -> Bool {
    keyTime + retention <= time || keyTime - retention > time
  }

  package func expiry(at time: Int64) -> Int64 { max(time, keyTime) + retention }
}

/// The result of `OnceStore.begin`: whether the request is to run, or what was found instead.
public enum OnceFinding: Hashable, Sendable {
  /// The request is to run now. The number is 1, or larger where earlier runs of the same record
  /// have an unknown end.
  case run(number: Int)
  /// The request runs now, in this process or in another one.
  case running
  /// The request has run, and this is its answer.
  case answered(OnceAnswer)
  /// The request has run, and its answer was not kept.
  case notKept
  /// The request has begun, and nobody knows whether it has ended.
  case unknown
  /// The key belongs to a request with another payload.
  case otherFingerprint
  /// There is no record, but there may have been one that has expired.
  case outOfTime
  /// There is no record, and no room for one.
  case full
  /// The store has another name than the request is meant for.
  case otherName
}

/// The answer of a request that has run: what its record keeps.
public struct OnceAnswer: Hashable, Sendable {
  /// The code of the response.
  public var code: ResponseCode
  /// The body of the response, as it is on the wire, without metadata. At most
  /// `OnceConfiguration.maxKeptResponse` bytes.
  public var body: [UInt8]

  /// Makes an answer.
  public init(code: ResponseCode, body: [UInt8]) {
    self.code = code
    self.body = body
  }
}
