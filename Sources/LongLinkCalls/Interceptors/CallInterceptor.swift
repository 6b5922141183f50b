// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver
@_spi(Loop) public import LongLinkTransport

/// The request of an exchange, as interceptors see it and can change it.
public struct OutboundRequest: Sendable {
  /// The message type.
  public let type: MessageType
  /// The service of the method; empty if it has none.
  public let service: String
  /// The operation as text, for logs, such as `request chat.Chat/Say type=7` or
  /// `GET https://example.com/nodes`.
  public let operation: String
  /// The message to send; empty for a request of HTTP. It cannot be changed, because it decides
  /// which calls share the exchange.
  public let body: any BodyEncodable & Sendable
  /// The options with which `next` sends the request: metadata, priority and others.
  ///
  /// The idempotency key, if there is one, is set already, so that all requests of one exchange
  /// have the same. A longer timeout than the time until `deadline` is shortened to it.
  public var options: RequestOptions
  /// The latest end of the exchange, whatever its interceptors do.
  public let deadline: LinkInstant
  /// Whether the exchange refreshes the cache, and no call waits for it.
  public let isRefresh: Bool
  /// The clock of the client's loop. A `sleep` on it throws when the exchange is cancelled.
  public let clock: EventLoopClock
}

/// The next interceptor, or the request itself if there is none, which an interceptor calls to go
/// on.
struct NextExchange: Sendable {
  private let interceptors: [CallInterceptor]
  /// The index of the next interceptor.
  private let index: Int
  private let exchange: LoopBound<InterceptedExchange>
  private let operation: LongLinkError.Operation

  init(
    _ interceptors: [CallInterceptor], from index: Int = 0,
    of exchange: LoopBound<InterceptedExchange>, doing operation: LongLinkError.Operation
  ) {
    self.interceptors = interceptors
    self.index = index
    self.exchange = exchange
    self.operation = operation
  }

  func callAsFunction(_ request: OutboundRequest) async throws(LongLinkError) -> [UInt8] {
    guard index < interceptors.count else {
      return try await response(to: request, by: exchange, doing: operation)
    }
    let failure: any Error
    do {
      let next = NextExchange(interceptors, from: index + 1, of: exchange, doing: operation)
      return try await interceptors[index](request) { request async throws(LongLinkError) in
        try await next(request)
      }
    } catch {
      failure = error
    }
    if let error = failure as? LongLinkError { throw error }
    if failure is CancellationError {
      throw LongLinkError(.cancelled, doing: operation, detail: "an interceptor was cancelled")
    }
    throw LongLinkError(.intercepted, doing: operation, detail: "\(PeerText("\(failure)"))")
  }
}

/// A function around the exchanges of a call client; set it in ``CallConfiguration/interceptors``.
///
/// It returns the body of the response: that of `next`, another one, or one of its own without
/// calling `next`. It throws to fail the calls: a `CancellationError` becomes `cancelled`, and any
/// other error that is no `LongLinkError` becomes `intercepted`, with its description as `detail`.
///
/// `next` is the next interceptor, or the request itself. It returns the body of the response,
/// which the next interceptor may have changed. It may be called from any task, and more than once:
/// each call sends a request. Call it before the interceptor returns: afterwards it throws
/// `cancelled` and sends nothing. It throws the error of the next interceptor, as a
/// `LongLinkError`, or the error of the request, with the delivery of this one request. The error
/// of the call covers all of its requests.
public typealias CallInterceptor =
  @Sendable (
    OutboundRequest,
    _ next: @escaping @Sendable (OutboundRequest) async throws(LongLinkError) -> [UInt8]
  ) async throws -> [UInt8]
