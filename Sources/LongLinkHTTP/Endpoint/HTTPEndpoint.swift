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
  /// The readable name, such as `nodes`. Give each endpoint of a service a different name.
  public let name: String
  /// The name of the endpoint's service, for which `CallConfiguration.services` can have policies
  /// and errors. It may be empty.
  public let service: String
  /// The options of the endpoint's requests; a call's own options override them.
  ///
  /// The timeout is that of the whole exchange. Metadata entries become header fields, and an
  /// idempotency key becomes the field `Idempotency-Key`. The options for priority, order,
  /// cancellation and being offline have no effect.
  public var options: RequestOptions
  /// Whether identical calls in progress share one exchange. Default: true for GET and HEAD, false
  /// for other methods. If it is false, a policy of the call or of the client can still enable it.
  public var isShared: Bool

  private let request: @Sendable (Input) throws -> HTTPRequest
  private let decode: @Sendable ([UInt8]) throws(BodyError) -> Reply

  /// The message type of the endpoint's calls, for `CallConfiguration.policies` and
  /// `CallClient.events(of:)`. It is computed from `service` and `name`.
  public var type: MessageType { MessageType(localName: "\(service)/\(name)") }

  /// Makes an endpoint.
  ///
  /// `request` makes the request from an input, on the thread that makes the call; the request's
  /// method is then set to `method`. `decode` makes the reply from the decompressed body, on any
  /// thread. If `request` throws, the call fails with `encodingFailed`; if `decode` throws, with
  /// `decodingFailed`.
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

  /// Returns a call of the endpoint over a service. Nothing is sent yet: each time that you pass
  /// the call to a `CallClient`, the client makes it.
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
  /// Makes an endpoint of one URL, which sends its input as the request's body.
  ///
  /// The default content type suits a `JSONBody` of LongLinkJSON.
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
