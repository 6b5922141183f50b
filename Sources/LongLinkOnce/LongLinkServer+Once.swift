// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import LongLinkDriver
public import LongLinkServer

/// What becomes of a request whose earlier run has an end that nobody knows.
public enum OnceUnknownEnd: Sendable {
  /// It is answered with 410, until the record expires.
  case keep
  /// It runs again. Its handler sees how often in `request.once?.attempt`, and must cope with what
  /// the earlier runs have done.
  ///
  /// Where processes share a store, the earlier run may still be going on. Choose this only if all
  /// effects are in the transaction that completes the record: the older run's completion then
  /// returns false, and its transaction is undone.
  case runAgain
}

extension LongLinkServer {
  /// Says what the records of a route's requests do. Call it after the route was set and before
  /// `start`; it traps afterwards, and for a type without a route.
  ///
  /// - Parameters:
  ///   - type: The message type of the route.
  ///   - unknownEnd: What becomes of a request that has begun in a process which is gone, or, where
  ///     processes share a store, seems to be. Default: it is answered with 410.
  ///   - notFinal: The codes after which the request may run again: such a response is not kept.
  ///     Default: each response is kept, except where the handler was not called. So are the 408
  ///     and 499 of a handler that was cancelled at its deadline, or because nobody waited.
  public func runOnce(
    _ type: MessageType, unknownEnd: OnceUnknownEnd = .keep, notFinal: Set<ResponseCode> = []
  ) {
    var rule = OnceRule()
    rule.runsAgain = unknownEnd == .runAgain
    rule.notFinal = notFinal
    setOnceRule(rule, of: type)
  }
}
