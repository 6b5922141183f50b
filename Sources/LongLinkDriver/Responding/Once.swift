// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

// The seam to what keeps the records of requests that run once. Without it no route has a rule for
// them, and a request costs nothing more.

/// What a route says of the records of its requests.
package struct OnceRule: Sendable {
  /// Whether a record whose end is unknown runs again.
  package var runsAgain = false
  /// The codes after which the request may run again: their answers are not kept.
  package var notFinal: Set<ResponseCode> = []

  package init() {}
}

/// A route whose requests may run once: how they are run then.
package final class OnceRoute: Sendable {
  package let rule: OnceRule
  let placement: HandlerPlacement
  let handler: @Sendable (InboundRequest) async throws -> AnyBody
  /// The same handler if it is synchronous.
  let synchronous: (@Sendable (InboundRequest) throws -> AnyBody)?

  init(
    _ rule: OnceRule, _ placement: HandlerPlacement,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> AnyBody,
    synchronous: (@Sendable (InboundRequest) throws -> AnyBody)? = nil
  ) {
    self.rule = rule
    self.placement = placement
    self.handler = handler
    self.synchronous = synchronous
  }
}

extension Route {
  /// Returns the route with a rule for requests that run once; itself if its exchanges carry items.
  package func once(_ rule: OnceRule) -> Route {
    switch self {
    case .inline(let handler):
      return .once(
        OnceRoute(rule, .connectionLoop, { try handler($0) }, synchronous: handler), self)
    case .task(let placement, let handler):
      return .once(OnceRoute(rule, placement, handler), self)
    case .guarded(let condition, let route):
      return .guarded(condition, route.once(rule))
    case .stream, .once:
      return self
    }
  }
}

/// The client of a connection, as what keeps its records knows it. Used on any thread.
package protocol OnceClient: AnyObject, Sendable {
  /// Finds what becomes of a request that is to run once. The payload is that of the request.
  func find(_ question: OnceQuestion, payload: RawSpan) -> OnceStep
  /// Counts a reply that was made in the place of a handler.
  func count(_ outcome: OnceOutcome)
}

/// A request that is to run once, as it has arrived.
package struct OnceQuestion {
  package let type: MessageType
  /// Its key, its space, and when it was first sent.
  package let metadata: ReceivedMetadata
  /// Whether only what is known already may be answered.
  package let isOverloaded: Bool
  package let route: OnceRoute
  /// The loop of its connection.
  package let loop: EventLoop

  /// Whether its handler is synchronous, so that it returns before the loop does anything else.
  package var isSynchronous: Bool { route.synchronous != nil }
}

/// What becomes of a request that is to run once.
package enum OnceStep {
  /// It gets this reply. Indirect, because most requests get none here.
  indirect case reply(OnceReply)
  /// It waits for the reply of a run.
  case wait(any OnceRun)
  /// Its handler is to be called, at once.
  case run(any OnceRun)
  /// Its handler is to be called, if the store allows it.
  case ask(any OnceRun)

  /// The run that it belongs to, and whether that calls the handler for it.
  var run: (any OnceRun, isCalled: Bool)? {
    switch self {
    case .reply: nil
    case .wait(let run): (run, false)
    case .run(let run), .ask(let run): (run, true)
    }
  }
}

/// A run of a request under a key, and those who wait for its reply. Used on any thread.
package protocol OnceRun: AnyObject, Sendable {
  /// The metadata of the request for which the handler is called.
  var metadata: ReceivedMetadata { get }
  /// Adds an exchange that waits for the reply, with the handler or without; returns the reply if
  /// it is there.
  func join(_ exchange: RunningHandler, runs: Bool) -> OnceReply?
  /// The exchange with the handler has ended before it could join.
  func dropped()
  /// Asks the store, once the exchange with the handler has joined; on its loop.
  func ask(_ placement: HandlerPlacement)
  /// An exchange has ended without a reply; on its loop.
  func left(_ exchange: RunningHandler, _ reason: OnceLeaving)
  /// The handler has returned; on its loop.
  func returned(_ reply: OnceReply, hasThrown: Bool)
  /// The synchronous handler of an `OnceStep.run` has returned. Returns the reply of its request if
  /// that is another one.
  func concluded(_ code: ResponseCode, _ body: [UInt8], isRefused: Bool) -> OnceReply?
}

/// What becomes of a request that is to run once: what counters tell.
package enum OnceOutcome: Int, CaseIterable, Sendable {
  /// Its handler was called.
  case run
  /// It got the answer of an earlier one.
  case replayed
  /// Its answer is not kept, or the end of its run is not known: 410.
  case gone
  /// Its key belongs to another payload: 409.
  case conflict
  /// Its space or time does not hold: 412.
  case terms
  /// The store has no room for another key: 429.
  case full
  /// Too many handlers run on after their requests: 429.
  case detached
  /// The server is overloaded, and does not know the key: 429.
  case overloaded
  /// The store fails, is late, or has too much to do: 503.
  case store
}

/// Why an exchange waits no more.
package enum OnceLeaving: Sendable {
  case cancelled
  case deadlinePassed
  case linkEnded
}

/// A reply to a request that is to run once.
package struct OnceReply: Sendable {
  package var code: ResponseCode
  package var body: [UInt8]
  /// Whether the handler was certainly not called.
  package var isRefused: Bool
  /// Whether it tells of an earlier request.
  package var isReplayed: Bool
  package var outcome: OnceOutcome
  package var retryAfter: Duration?
  /// The space and the store's time, if those of the request do not hold.
  package var terms: OnceTerms?

  package init(
    _ code: ResponseCode, _ body: [UInt8], _ outcome: OnceOutcome = .run, isRefused: Bool = false,
    isReplayed: Bool = false, retryAfter: Duration? = nil, terms: OnceTerms? = nil
  ) {
    self.outcome = outcome
    self.code = code
    self.body = body
    self.isRefused = isRefused
    self.isReplayed = isReplayed
    self.retryAfter = retryAfter
    self.terms = terms
  }

  /// A refusal, with a text for people.
  package static func refusal(
    _ code: ResponseCode, _ detail: String, _ outcome: OnceOutcome, retryAfter: Duration? = nil,
    terms: OnceTerms? = nil
  ) -> OnceReply {
    OnceReply(
      code, Array(detail.utf8), outcome, isRefused: true, retryAfter: retryAfter, terms: terms)
  }
}
