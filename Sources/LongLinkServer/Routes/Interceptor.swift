// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

/// A function around the handlers of a server, which `LongLinkServer.intercept(_:_:)` sets.
///
/// It returns the body of the response: that of `next`, another one, or one of its own without
/// calling `next`. An error that it throws counts as thrown by the handler.
///
/// `next` is the next interceptor, or the handler. Call it before the interceptor returns, and at
/// most once for a stream, whose items can be read only once. It throws what the handler throws,
/// and `CancellationError` without calling the handler if the task was cancelled.
public typealias Interceptor =
  @Sendable (
    InboundRequest,
    _ next: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) async throws -> any BodyEncodable & Sendable

/// What an interceptor calls to go on with a request.
package typealias NextHandler =
  @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable

extension Route {
  /// Returns the route with interceptors around its handler, the first one outermost.
  ///
  /// A synchronous handler becomes a task on the connection's loop.
  func intercepted(by interceptors: [Interceptor]) -> Route {
    if interceptors.isEmpty { return self }
    // The handlers are concurrent functions, so that they run at their places even if an
    // interceptor is isolated to an actor. An interceptor may go on after its request has ended:
    // then the handler is not called.
    switch self {
    case .inline(let handler):
      let whole = compose(interceptors) { @concurrent request in
        try Task.checkCancellation()
        return try handler(request)
      }
      return .task(.connectionLoop, whole)
    case .task(let placement, let handler):
      let whole = compose(interceptors) { @concurrent request in
        try Task.checkCancellation()
        return try await handler(request)
      }
      return .task(placement, whole)
    case .stream(var route):
      let handler = route.handler
      route.handler = { request, channel in
        let whole = compose(interceptors) { @concurrent request in
          try Task.checkCancellation()
          return try await handler(request, channel)
        }
        return try await whole(request)
      }
      return .stream(route)
    case .guarded(let rule, let route):
      return .guarded(rule, route.intercepted(by: interceptors))
    case .once:
      preconditionFailure("interceptors are inside of what runs once")
    }
  }
}

/// Puts interceptors around a handler, the first one outermost.
private func compose(
  _ interceptors: [Interceptor], around handler: @escaping NextHandler
) -> NextHandler {
  interceptors.reversed().reduce(handler) { next, interceptor in
    { request in try await interceptor(request, next) }
  }
}
