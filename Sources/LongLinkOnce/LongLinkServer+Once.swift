// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import LongLinkDriver
public import LongLinkServer

/// What a server does when a request comes again whose earlier run has an unknown end.
public enum OnceUnknownEnd: Sendable {
  /// The request is answered with 410, until its record expires.
  case keep
  /// The request runs again. Its handler sees the number of the run in `request.once?.attempt`, and
  /// must cope with what the earlier runs have done.
  ///
  /// Where processes share a store, the earlier run may still be going on. Choose this only if all
  /// effects are in the transaction that completes the record: the older run's completion then
  /// returns false, and its transaction is undone.
  case runAgain
}

extension LongLinkServer {
  /// Sets how the requests of a route run once: which run again, and which responses are not kept.
  /// Call it after the route was set and before `start`; it traps afterwards, and for a type
  /// without a route.
  ///
  /// - Parameters:
  ///   - type: The message type of the route.
  ///   - unknownEnd: What becomes of a request that has begun in a process which is gone, or, where
  ///     processes share a store, seems to be gone. Default: it is answered with 410.
  ///   - notFinal: The codes of responses that are not kept, after which the request may run again.
  ///     Default: none, so that each response of the handler is kept, also the 408 or 499 of one
  ///     that was cancelled at its deadline, or because no client waited any more.
  public func runOnce(
    _ type: MessageType, unknownEnd: OnceUnknownEnd = .keep, notFinal: Set<ResponseCode> = []
  ) {
    var rule = OnceRule()
    rule.runsAgain = unknownEnd == .runAgain
    rule.notFinal = notFinal
    setOnceRule(rule, of: type)
  }
}
