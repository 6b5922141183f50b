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
  /// The header fields. Default: none.
  ///
  /// The service replaces `Host`, `Content-Length`, `Transfer-Encoding`, `Connection` and
  /// `Accept-Encoding` with its own values, and `Content-Type` with that of the body.
  public var fields: HTTPFields
  /// Further fields, such as keys, that only the origin of `url` gets. A redirect to another origin
  /// drops them, and also `authentication` and the fields `Authorization`, `Cookie`, `Origin` and
  /// `Proxy-Authorization`.
  public var secretFields: HTTPFields
  /// The body. Default: none.
  public var body: HTTPBody
  /// How the request proves who sends it. Default nil: without authentication.
  public var authentication: HTTPAuthentication?
  /// The time limit for the whole exchange, redirects and response body included. Default nil:
  /// `HTTPConfiguration.timeout` applies.
  public var timeout: Duration?
  /// The most redirects that are followed. Default and largest value: 5. A value outside 0...5
  /// counts as the nearest inside.
  public var maxRedirects: Int
  /// The most bytes of a decompressed response body in memory, not negative. It does not bound
  /// `open` and `download`. Default nil: `HTTPConfiguration.maxResponseBytes` applies.
  public var maxResponseBytes: Int?
  /// Whether a compressed response is accepted; never for a download. Default true.
  public var acceptsCompression: Bool
  /// Whether the service's cache may answer the request and may keep its response, as the server
  /// allows. Default false. It needs `HTTPConfiguration.cacheBytes`.
  public var usesCache: Bool
  /// When the request is sent again after its connection was lost. Default `ifSafe`.
  ///
  /// With `ifSafe` it is sent again, at most twice, while no byte of it has left. GET, HEAD and
  /// OPTIONS are also sent again once if a connection that had served other requests ended without
  /// a byte of a response. With `idempotent`, a request of any method is also sent again once if
  /// its connection ended before the response began. A body that has to be read again must be
  /// replayable. With `never` the request is not sent again; with `once` it fails with
  /// `unsupported`.
  public var retry: RetryMode
  /// Called with the progress after each piece of the request's body that was sent, and after each
  /// chunk of the response's body that was read. Default nil.
  ///
  /// It is called on any thread, but never twice at the same time. It must not block.
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

/// The progress of an exchange. `sent` and `received` never decrease, even while a body is sent
/// again, for instance after a redirect.
public struct HTTPProgress: Hashable, Sendable {
  /// The number of bytes of the request's body that have left this process.
  public var sent: UInt64 = 0
  /// The length of the request's body in bytes; nil if it is not known.
  public var sentTotal: UInt64?
  /// The number of bytes of the response's body that were read, after decompression.
  public var received: UInt64 = 0
  /// The length of the response's body in bytes; nil if it is not known or the body is compressed.
  public var receivedTotal: UInt64?
}
#endif
