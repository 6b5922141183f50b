// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver

/// A function around the handlers of a server.
typealias Interceptor =
  @Sendable (
    InboundRequest, _ next: @escaping NextHandler
  ) async throws -> any BodyEncodable & Sendable

/// The function that an interceptor calls to go on with a request.
package typealias NextHandler =
  @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable

extension Route {
  /// Returns the route with interceptors around its handler, the first one outermost.
  ///
  /// A synchronous handler becomes a task on the connection's loop.
  func intercepted(by interceptors: [Interceptor]) -> Route {
    if interceptors.isEmpty { return self }
    // The handlers are concurrent functions, so they run where their route says even if an
    // interceptor is isolated to an actor. An interceptor may go on after its request has ended;
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
