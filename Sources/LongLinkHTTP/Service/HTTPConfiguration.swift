// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver

/// The configuration of an ``HTTPService``. Every field has a default.
public struct HTTPConfiguration: Sendable {
  /// How long it may take to get a connection: a place in the pool, the look-up of the name, the
  /// connect, the proxy's and TLS's handshakes. More than zero. Default 10 s.
  public var connectTimeout: Duration
  /// How long the server may be silent: until its response begins once the request has left,
  /// between two parts of the response, and while it takes nothing of the request. More than zero.
  /// Default 30 s.
  ///
  /// After that, the exchange fails with `deadlineExceeded`. The time in which the application does
  /// not read a response does not count.
  public var idleTimeout: Duration
  /// The time limit of an exchange, with redirects and the response's body, if its request has no
  /// timeout of its own; more than zero, or nil for no limit. Default nil.
  public var timeout: Duration?
  /// The most bytes of a decompressed response body in memory, at least 1; a larger one fails with
  /// `tooLarge`. It does not bound `open` and `download`. Default 16 MiB.
  public var maxResponseBytes: Int
  /// How many times larger than its compressed bytes a body of over 1 MiB may be, at least 1; a
  /// larger one fails with `corrupted`. Default 100.
  public var maxInflation: Int
  /// The most connections of HTTP/1 to one server, at least 1. Default 8.
  public var connectionsPerServer: Int
  /// How long a connection without a request is kept; more than zero. Default 60 s.
  public var connectionIdleTimeout: Duration
  /// The most exchanges in progress, at least 1; further ones fail with `overloaded`. Default 256.
  public var maxExchanges: Int
  /// Whether HTTP/2 is offered to servers over TLS. Default true.
  public var offersHTTP2: Bool
  /// Which further authorities are trusted, and the service's own certificate. Default: only the
  /// system's authorities, and no certificate.
  public var tls: HTTPTLS
  /// The proxy for all requests. Default nil: none. Environment variables are ignored.
  public var proxy: HTTPProxy?
  /// The size of the response cache, in bytes; at least 0. Only requests with
  /// ``HTTPRequest/usesCache`` use it. Default 0: nothing is kept.
  public var cacheBytes: Int
  /// The jar for cookies that servers set. Default nil: cookies are not sent back. With a jar, no
  /// response is cached. A request with its own `Cookie` field gets no cookies from the jar.
  public var cookies: HTTPCookies?

  /// Makes a configuration.
  public init(
    connectTimeout: Duration = .seconds(10), idleTimeout: Duration = .seconds(30),
    timeout: Duration? = nil, maxResponseBytes: Int = 16_777_216, maxInflation: Int = 100,
    connectionsPerServer: Int = 8, connectionIdleTimeout: Duration = .seconds(60),
    maxExchanges: Int = 256, offersHTTP2: Bool = true, tls: HTTPTLS = HTTPTLS(),
    proxy: HTTPProxy? = nil, cacheBytes: Int = 0, cookies: HTTPCookies? = nil
  ) {
    self.connectTimeout = connectTimeout
    self.idleTimeout = idleTimeout
    self.timeout = timeout
    self.maxResponseBytes = maxResponseBytes
    self.maxInflation = maxInflation
    self.connectionsPerServer = connectionsPerServer
    self.connectionIdleTimeout = connectionIdleTimeout
    self.maxExchanges = maxExchanges
    self.offersHTTP2 = offersHTTP2
    self.tls = tls
    self.proxy = proxy
    self.cacheBytes = cacheBytes
    self.cookies = cookies
  }

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    for (field, duration) in [
      ("connectTimeout", connectTimeout), ("idleTimeout", idleTimeout),
      ("connectionIdleTimeout", connectionIdleTimeout), ("timeout", timeout ?? .seconds(1)),
    ] where duration <= .zero {
      throw .configuration(field, "it is not more than zero")
    }
    for (field, value) in [
      ("maxResponseBytes", maxResponseBytes), ("maxInflation", maxInflation),
      ("connectionsPerServer", connectionsPerServer), ("maxExchanges", maxExchanges),
    ] where value < 1 {
      throw .configuration(field, "it is less than 1")
    }
    if cacheBytes < 0 { throw .configuration("cacheBytes", "it is negative") }
    if let proxy, proxy.host.isEmpty || !(1...65_535).contains(proxy.port) {
      throw .configuration("proxy", "its host or its port is invalid")
    }
  }
}

/// The TLS settings of an ``HTTPService``, or of ``HTTPWayOptions``: authorities to trust besides
/// the system's, and the client's certificate.
public struct HTTPTLS: Hashable, Sendable {
  /// A file or text in PEM format.
  public enum Source: Hashable, Sendable {
    /// The path of a file.
    case file(String)
    /// The text itself.
    case pem(String)
  }

  /// Certificates of authorities that are trusted besides the system's. Default: none.
  public var additionalRoots: [Source]
  /// The certificate for servers that ask for one, and the chain after it. Default nil: none.
  public var certificate: Source?
  /// The private key of `certificate`. Set both or neither. Default nil: none.
  public var privateKey: Source?

  /// Makes the settings.
  public init(
    additionalRoots: [Source] = [], certificate: Source? = nil, privateKey: Source? = nil
  ) {
    self.additionalRoots = additionalRoots
    self.certificate = certificate
    self.privateKey = privateKey
  }
}

/// An HTTP proxy. All requests, also those without TLS, go through it with CONNECT.
public struct HTTPProxy: Hashable, Sendable {
  /// The proxy's host.
  public var host: String
  /// The proxy's port, 1 to 65,535.
  public var port: Int
  /// The name for Basic authentication; nil for no authentication.
  public var user: String?
  /// The password for Basic authentication; without `user` it is not used.
  public var password: String

  /// Makes a proxy.
  public init(host: String, port: Int, user: String? = nil, password: String = "") {
    self.host = host
    self.port = port
    self.user = user
    self.password = password
  }
}
#endif
