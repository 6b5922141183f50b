// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

extension LongLinkServer {
  /// Sets the rule of all routes and pushes that have no rule of their own, whether they are set
  /// before or afterwards. Call it before `start`, and only once; it traps otherwise.
  ///
  /// Default: `.everyone`. With `.authenticated`, a route whose rule was forgotten is closed, and
  /// open routes say so with `requires: .everyone`. A server that starts with rules that need a
  /// principal, but without `authenticate`, logs a warning.
  public func require(
    _ rule: AccessRule, fileID: StaticString = #fileID, line: UInt = #line
  ) {
    setOnce(.require, at: SettingPlace(fileID, line)) { $0.rule = rule }
  }

  /// Sets the rule of routes, replacing the ones that they had. Call it after the routes were set
  /// and before `start`; it traps afterwards, and for a type without a route.
  ///
  /// Use it for single methods of a service that sets its routes itself.
  public func require(
    _ rule: AccessRule, for type: MessageType, _ others: MessageType...
  ) {
    for type in [type] + others {
      beforeStart("set the access rule of message type \(type)") { hooks in
        precondition(router.contains(type), "there is no route of message type \(type)")
        hooks.rules[type] = rule
      }
    }
  }

  /// Sets what a route says of the records of requests that run once.
  package func setOnceRule(_ rule: OnceRule, of type: MessageType) {
    beforeStart("set how message type \(type) runs once") { hooks in
      precondition(router.contains(type), "there is no route of message type \(type)")
      hooks.onceRules[type] = rule
    }
  }

  /// Puts a function around the handlers of all routes, or of the given types, whether they are set
  /// before or afterwards. Call it before `start`; it traps afterwards.
  ///
  /// The function gets each request that an access rule has not refused, with its principal
  /// (`request.principal`), metadata and deadline, and returns the body of the response: that of
  /// `next`, another one, or one of its own without calling `next`. What it throws, such as a
  /// `Rejection`, counts as thrown by the handler. The first interceptor is the outermost.
  ///
  /// `next` is the next interceptor, or the handler. Call it before the interceptor returns, and at
  /// most once for a stream, whose items can be read only once. It throws what the handler throws,
  /// and `CancellationError` without calling the handler if the task was cancelled.
  ///
  /// It runs in the handler's task, which is cancelled when the client cancels, the connection
  /// ends, or the deadline passes; task-local values reach the handler. A synchronous handler runs
  /// in such a task as well, on the connection's loop. Around a stream it sees the exchange as a
  /// whole: `next` returns when the handler has.
  public func intercept(
    _ types: [MessageType]? = nil,
    _ interceptor:
      @escaping @Sendable (
        InboundRequest,
        _ next: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
      ) async throws -> any BodyEncodable & Sendable
  ) {
    beforeStart("add an interceptor") { hooks in
      hooks.interceptors.append((types.map { Set($0) }, interceptor))
    }
  }
}
