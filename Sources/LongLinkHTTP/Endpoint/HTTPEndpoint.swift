// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkCalls
public import LongLinkCore

/// One method of an HTTP service: how its input becomes a request, and its response a reply.
///
/// It is to HTTP what `RPCMethod` is to a link: a `CallClient` makes its calls, with policies,
/// de-duplication, a cache, groups and error texts.
///
/// ```swift
/// let nodes = HTTPEndpoint<String, JSONBody<[Node]>>(.get, "nodes", of: "Feed") { topic in
///   HTTPRequest(.get, "https://example.com/nodes/\(topic)")
/// }
/// let reply = try await api.value(of: nodes("harbour", over: service))
/// ```
public struct HTTPEndpoint<Input: Sendable, Reply: Sendable>: Sendable {
  /// The HTTP method of the endpoint's requests.
  public let method: HTTPMethod
  /// The readable name, such as `nodes`. Different endpoints of a service have different names.
  public let name: String
  /// The name of the endpoint's service, by which `CallConfiguration.services` has policies and
  /// errors.
  public let service: String
  /// The options of the endpoint's requests; a call's own options override them.
  ///
  /// The timeout is that of the whole exchange. Metadata become fields of the head, and an
  /// idempotency key the field `Idempotency-Key`. Priority, order, cancellation and what happens
  /// offline have no meaning for HTTP.
  public var options: RequestOptions
  /// Whether identical calls share one exchange. Default: for GET and HEAD.
  public var isShared: Bool

  private let request: @Sendable (Input) throws -> HTTPRequest
  private let decode: @Sendable ([UInt8]) throws(BodyError) -> Reply

  /// The message type of the endpoint's calls, for `CallConfiguration.policies` and
  /// `CallClient.events(of:)`. It is computed from the names.
  public var type: MessageType { MessageType(localName: "\(service)/\(name)") }

  /// Makes an endpoint.
  ///
  /// `request` makes the request of an input, and `decode` the reply of a body, decompressed and at
  /// most as large as the service allows. Both may be called on any thread. If `request` throws,
  /// the call fails with `encodingFailed`.
  ///
  /// If `options.retry` is nil, requests of GET, HEAD, OPTIONS, PUT and DELETE are retried with
  /// `RetryMode.idempotent`.
  public init(
    _ method: HTTPMethod, _ name: String, of service: String = "",
    options: RequestOptions = RequestOptions(),
    request: @escaping @Sendable (Input) throws -> HTTPRequest,
    decode: @escaping @Sendable ([UInt8]) throws(BodyError) -> Reply
  ) {
    self.method = method
    self.name = name
    self.service = service
    self.options = options
    if options.retry == nil, method.isIdempotent { self.options.retry = .idempotent }
    isShared = method == .get || method == .head
    self.request = request
    self.decode = decode
  }

  /// Returns a call of the endpoint over a service. A `CallClient` makes the call each time it gets
  /// it.
  public func callAsFunction(
    _ input: Input, over service: HTTPService, policy: CallPolicy = CallPolicy()
  ) -> Call<Reply> {
    let request = Result { try self.request(input) }.map { made in
      var made = made
      made.method = method
      return made
    }
    let carrier = HTTPCarrier(request, method, name, type, service.core)
    return Call(
      type: type, service: self.service, policy: policy,
      methodPolicy: CallPolicy(options, isShared: isShared ? true : nil), key: carrier.key,
      carrier: carrier, decode: decode)
  }
}

extension HTTPEndpoint where Reply: BodyDecodable {
  /// Makes an endpoint whose replies are read from the body, such as `JSONBody` of LongLinkJSON.
  public init(
    _ method: HTTPMethod, _ name: String, of service: String = "",
    options: RequestOptions = RequestOptions(),
    request: @escaping @Sendable (Input) throws -> HTTPRequest
  ) {
    self.init(method, name, of: service, options: options, request: request) {
      (bytes) throws(BodyError) in
      try Reply(copying: bytes)
    }
  }
}

extension HTTPEndpoint where Input: BodyEncodable, Reply: BodyDecodable {
  /// Makes an endpoint of one URL, whose input is the body: by default JSON, for a `JSONBody` of
  /// LongLinkJSON.
  public init(
    _ method: HTTPMethod, _ name: String, of service: String = "", url: String,
    contentType: String = "application/json", options: RequestOptions = RequestOptions()
  ) {
    self.init(method, name, of: service, options: options) { input in
      var request = HTTPRequest(method, url)
      request.body = try .encoding(input, contentType: contentType)
      return request
    }
  }
}
#endif
