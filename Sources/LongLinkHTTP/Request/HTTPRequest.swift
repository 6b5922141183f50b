// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkCore

/// An HTTP request, for an ``HTTPService``.
///
/// ```swift
/// var request = HTTPRequest(.post, "https://example.com/photos")
/// request.body = .multipart([.file("photo", at: "harbour.jpg")])
/// let reply = try await service.send(request)
/// ```
public struct HTTPRequest: Sendable {
  /// The method. Default GET.
  public var method: HTTPMethod
  /// The URL: http or https, at most 8 KiB, without a name or a password.
  public var url: String
  /// The header fields. `Host`, and the fields for the body's type, length and encoding, are added.
  public var fields: HTTPFields
  /// Further fields, such as keys, that only the origin of `url` gets. A redirect to another origin
  /// drops them, and also `authentication` and the fields `Authorization`, `Cookie`, `Origin` and
  /// `Proxy-Authorization`.
  public var secretFields: HTTPFields
  /// The body. Default: none.
  public var body: HTTPBody
  /// How the request proves who sends it. Default nil: not at all.
  public var authentication: HTTPAuthentication?
  /// The time limit for the whole exchange, redirects and response body included. Default nil:
  /// `HTTPConfiguration.timeout` applies.
  public var timeout: Duration?
  /// The most redirects that are followed. Default and largest value: 5. A value outside 0...5
  /// counts as the nearest inside.
  public var maxRedirects: Int
  /// The most bytes of the response body that `send` accepts; files and sequences have no bound.
  /// Default nil: `HTTPConfiguration.maxResponseBytes` applies.
  public var maxResponseBytes: Int?
  /// Whether a compressed response is accepted; never for a download. Default true.
  public var acceptsCompression: Bool
  /// Whether the cache may answer the request, and may keep its response, as the server allows.
  /// Default false.
  public var usesCache: Bool
  /// Whether the request is retried automatically. Default: `ifSafe`, while no byte of it has left.
  /// GET, HEAD and OPTIONS are also retried once if the connection, on which the server had
  /// answered before, ended without a byte of a response. With `once` it fails with `unsupported`.
  public var retry: RetryMode
  /// Called with the progress of the exchange, on any thread, at most once for each piece of 64
  /// KiB. Default nil.
  public var progress: (@Sendable (HTTPProgress) -> Void)?

  /// Makes a request.
  public init(_ method: HTTPMethod = .get, _ url: String) {
    self.method = method
    self.url = url
    fields = HTTPFields()
    secretFields = HTTPFields()
    body = .none
    authentication = nil
    timeout = nil
    maxRedirects = 5
    maxResponseBytes = nil
    acceptsCompression = true
    usesCache = false
    retry = .ifSafe
    progress = nil
  }
}

/// The progress of an exchange. While a body is sent again, after a redirect for instance, no
/// number becomes smaller.
public struct HTTPProgress: Hashable, Sendable {
  /// The bytes of the request's body that have left this process.
  public var sent: UInt64 = 0
  /// The bytes of the request's body, if they are known.
  public var sentTotal: UInt64?
  /// The bytes of the response's body that were read, decompressed.
  public var received: UInt64 = 0
  /// The bytes of the response's body, if they are known.
  public var receivedTotal: UInt64?
}
#endif
