// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A promise that an oracle watches over.
public enum OraclePromise: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// Each request ends exactly once.
  case endsOnce = "ends-once"
  /// What was reported `notSent` or `refused` never ran, what succeeded ran, and nothing ran twice
  /// that is not idempotent.
  case truthfulDelivery = "truthful-delivery"
  /// An answer, and a push, is the one that was meant, whole and undamaged.
  case ownAnswers = "own-answers"
  /// No stream, listener, timer, request or handler is left when all is closed.
  case nothingLeft = "nothing-left"
  /// A dead peer is found within interval and timeout, by each side of each link.
  case deadPeersFound = "dead-peers-found"
  /// A peer that was heard of a moment ago is not taken for dead.
  case livePeersKept = "live-peers-kept"
  /// No attempt to connect comes earlier than its policy allows.
  case attemptsPaced = "attempts-paced"
  /// A request ends when its deadline has passed, at the latest.
  case deadlinesKept = "deadlines-kept"
  /// Queues stay within their bounds.
  case queuesBounded = "queues-bounded"
  /// When faults have stopped, clients are connected again within a computed time.
  case recovers
  /// The counters of both sides agree with each other, and with what was seen.
  case countersAgree = "counters-agree"
  /// Ordered requests, and pushes, arrive in the order in which they were sent.
  case orderKept = "order-kept"
  /// The run comes to its end.
  case comesToItsEnd = "comes-to-its-end"

  /// The promise's name.
  public var description: String { rawValue }
}

/// A promise that was broken: which, when, and how.
public struct OracleFinding: Hashable, Sendable, CustomStringConvertible {
  /// The promise.
  public let promise: OraclePromise
  /// When it was found to be broken, in virtual time.
  public let time: LinkInstant
  /// What happened, for a person.
  public let detail: String

  /// Makes a finding.
  public init(_ promise: OraclePromise, at time: LinkInstant, _ detail: String) {
    self.promise = promise
    self.time = time
    self.detail = detail
  }

  /// The promise, the time and what happened, on one line.
  public var description: String { "\(promise) at \(time.sinceStart): \(detail)" }
}
