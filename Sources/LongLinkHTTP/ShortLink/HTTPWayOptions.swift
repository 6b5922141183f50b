// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkDriver
internal import NIOCore
internal import NIOHTTP1

/// How a client reaches a gateway over HTTP. Every field has a default.
public struct HTTPWayOptions: Sendable {
  /// Headers that each request carries besides the framework's own, such as `Authorization`.
  /// Default: none.
  ///
  /// The gateway does not look at them: a proxy in front of it has to check them.
  ///
  /// `Content-Type`, `Content-Length`, `Transfer-Encoding`, `Connection`, `Accept`, `Expect` and
  /// `Host` are set by the framework: `validate()` rejects them here.
  public var headers: [(name: String, value: String)] = []
  /// The most time for the look-up, the connect and the TLS handshake together; above zero.
  /// Default 10 s.
  public var connectTimeout: Duration = .seconds(10)
  /// The TLS settings. Default: the system's roots are trusted, and the client has no certificate.
  /// Files are read when the way is made.
  public var tls = HTTPTLS()
  /// The proxy to connect through. Default nil: none. Environment variables are ignored.
  public var proxy: HTTPProxy?
  /// The most connections to the gateway at once, of all clients that share the way; at least 1.
  /// Default 64.
  ///
  /// Each running request or stream takes one connection. A client has at most 8 at once, and its
  /// other requests wait in its queue, so this limit matters only if several clients share a way,
  /// or if it is below 8. A request that it holds back waits for `connectTimeout` at most.
  public var maxConnections = 64
  /// How long a connection without requests is kept; above zero. Default 30 s.
  ///
  /// Keep it below the idle time of the gateway and of each proxy in front of it (often 60 s), so
  /// that no request meets a connection that is just being closed.
  public var idleTimeout: Duration = .seconds(30)

  /// Makes options with the defaults.
  public init() {}

  private static let reserved: Set<String> = [
    "content-type", "content-length", "transfer-encoding", "connection", "accept", "expect", "host",
  ]

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    for (name, _) in headers where Self.reserved.contains(name.lowercased()) {
      throw .configuration("headers", "\(name) is set by the framework")
    }
    for (name, value) in headers
    where !HTTPMethod.isToken(name) || value.utf8.contains(where: { $0 < 32 || $0 == 127 }) {
      throw .configuration("headers", "a name is no token, or a control character is in a value")
    }
    if connectTimeout <= .zero {
      throw .configuration("connectTimeout", "\(connectTimeout) is not above zero")
    }
    if idleTimeout <= .zero {
      throw .configuration("idleTimeout", "\(idleTimeout) is not above zero")
    }
    if maxConnections < 1 { throw .configuration("maxConnections", "\(maxConnections) is below 1") }
    if let proxy, proxy.host.isEmpty || !(1...65_535).contains(proxy.port) {
      throw .configuration("proxy", "it needs a host, and a port from 1 to 65,535")
    }
  }

  /// The configuration of the HTTP client, which does not retry and follows no redirects.
  func clientConfiguration() throws(LongLinkError) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: try tls.configuration(),
      redirectConfiguration: .disallow,
      timeout: .init(connect: connectTimeout.timeAmount))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.connectionPool.idleTimeout = idleTimeout.timeAmount
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = maxConnections
    configuration.proxy = proxy?.server
    return configuration
  }
}
#endif
