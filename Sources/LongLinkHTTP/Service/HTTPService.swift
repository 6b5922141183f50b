// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver

/// A client of HTTP services: requests over pooled connections of HTTP/1.1 and HTTP/2.
///
/// ```swift
/// let service = try HTTPService()
/// let reply = try await service.send(HTTPRequest(.get, "https://example.com/nodes"))
/// await service.close()
/// ```
///
/// It may be used from any thread. Every failure is a `LongLinkError`: a status that is not 200 to
/// 299 is `rejected`, with the status as `response` and at most 64 KiB of its body. Only `download`
/// throws an ``HTTPDownloadError``, since a file may fail too. Requests of endpoints
/// (``HTTPEndpoint``) go through a `CallClient`, with its policies.
///
/// Close a service when you no longer need it. A service that is dropped without that closes its
/// connections in the background.
public final class HTTPService: Sendable {
  let core: ServiceCore

  /// The configuration that the service was made with.
  public var configuration: HTTPConfiguration { core.configuration }

  /// Makes a service. It does not connect yet.
  ///
  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range or a
  /// certificate cannot be read.
  public init(_ configuration: HTTPConfiguration = HTTPConfiguration()) throws(LongLinkError) {
    core = try ServiceCore(configuration)
  }

  /// Sends a request, and returns its response with the body in memory.
  ///
  /// Throws `rejected`, with the status in `response`, for any final status but 200 to 299, and
  /// `tooLarge` if the body has more bytes than the request or the configuration allows. Cancelling
  /// the task ends the exchange with `cancelled`.
  public func send(_ request: HTTPRequest) async throws(LongLinkError) -> HTTPReply {
    try await HTTPExchange(request, on: core).reply()
  }

  /// Sends a request, and returns its response as soon as the head has arrived.
  ///
  /// Throws `rejected`, with the status in `response`, for any final status but 200 to 299. The
  /// deadline holds until the body has ended. `maxResponseBytes` does not bound the body.
  public func open(_ request: HTTPRequest) async throws(LongLinkError) -> HTTPResponse {
    try await HTTPExchange(request, on: core).response()
  }

  /// Sends a request, and calls `completion` once with the outcome, on any thread. Cancel the task
  /// to end the exchange with `cancelled`; dropping it does not end the exchange.
  @discardableResult
  public func start(
    _ request: HTTPRequest,
    completion: @escaping @Sendable (Result<HTTPReply, LongLinkError>) -> Void
  ) -> Task<Void, Never> {
    Task { [core] in
      let result: Result<HTTPReply, LongLinkError>
      do throws(LongLinkError) {
        result = .success(try await HTTPExchange(request, on: core).reply())
      } catch {
        result = .failure(error)
      }
      completion(result)
    }
  }

  /// The service's counters at this moment.
  public var counters: HTTPCounters { core.counters }

  /// Ends all exchanges and connections, and returns when they have ended. The exchanges and all
  /// later requests fail with `closed`.
  public func close() async { await core.close() }
}
#endif
