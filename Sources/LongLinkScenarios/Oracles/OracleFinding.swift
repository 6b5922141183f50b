// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// A promise that an oracle checks.
package enum OraclePromise: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// Each request ends exactly once.
  case endsOnce = "ends-once"
  /// Requests reported as `notSent` or `refused` never ran, successful requests ran, handlers of
  /// those reported as `answered` had returned, and requests that are not idempotent ran at most
  /// once.
  case truthfulDelivery = "truthful-delivery"
  /// Each response or push is the right one, complete and undamaged.
  case ownAnswers = "own-answers"
  /// No stream, listener, timer, request or handler is left after everything is closed.
  case nothingLeft = "nothing-left"
  /// Each side of each link detects a dead peer within interval plus timeout.
  case deadPeersFound = "dead-peers-found"
  /// A peer that sent bytes within the timeout is not considered dead.
  case livePeersKept = "live-peers-kept"
  /// No attempt to connect is earlier than the policy allows.
  case attemptsPaced = "attempts-paced"
  /// A request ends by its deadline.
  case deadlinesKept = "deadlines-kept"
  /// Queues stay within their bounds.
  case queuesBounded = "queues-bounded"
  /// After faults have stopped, clients reconnect within a computed time.
  case recovers
  /// The counters of both sides agree with each other and with the observed events.
  case countersAgree = "counters-agree"
  /// Ordered requests, and pushes, arrive in the order in which they were sent.
  case orderKept = "order-kept"
  /// Items arrive undamaged, in the order in which they were written, and each once.
  case itemsInOrder = "items-in-order"
  /// A stream that looks complete to its reader is complete, and an error in band comes after all
  /// items that were written before it.
  case streamsComplete = "streams-complete"
  /// Items are sent only with credit, and their reader lets only a window of them come.
  case creditKept = "credit-kept"
  /// A stream goes on while the network is whole and both sides want it to.
  case streamsGoOn = "streams-go-on"
  /// No side finds that the other has broken a rule of the wire, unless bytes were damaged.
  case rulesKept = "rules-kept"
  /// A client is one peer, whatever connections it has: it gets no broadcast twice, and is reported
  /// as gone only when it has none.
  case onePeer = "one-peer"
  /// A request that is to run once runs once, within the time for which it is kept: also when its
  /// caller makes it again, and whatever crashes. Its answer is that of its run.
  case runsOnce = "runs-once"
  /// An answer that is kept is not refused to its client while it is kept, and afterwards not
  /// remembered for longer than as long again.
  case answersKept = "answers-kept"
  /// No connection, request or stream begins or ends because a credential is renewed.
  case renewedInPlace = "renewed-in-place"
  /// The run ends.
  case comesToItsEnd = "comes-to-its-end"

  /// The promise's name.
  package var description: String { rawValue }
}

/// A broken promise: which, when and how.
package struct OracleFinding: Hashable, Sendable, CustomStringConvertible {
  /// The promise.
  package let promise: OraclePromise
  /// When it was found to be broken, in virtual time.
  package let time: LinkInstant
  /// A readable description of what happened.
  package let detail: String

  /// Makes a finding.
  package init(_ promise: OraclePromise, at time: LinkInstant, _ detail: String) {
    self.promise = promise
    self.time = time
    self.detail = detail
  }

  /// The promise, the time and what happened, on one line.
  package var description: String { "\(promise) at \(time): \(detail)" }
}
