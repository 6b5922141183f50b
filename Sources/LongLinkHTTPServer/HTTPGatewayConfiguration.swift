// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore
public import LongLinkDriver
internal import LongLinkServer
public import Logging

/// The configuration of a gateway. Every field has a default.
public struct HTTPGatewayConfiguration: Sendable {
  /// The address or name to listen on. Default `127.0.0.1`, since a proxy with TLS belongs in front
  /// of a gateway.
  public var host = "127.0.0.1"
  /// The port to listen on, 0 to 65,535; 0, the default, takes a free one.
  public var port = 0
  /// The path in the URL at which the gateway takes requests; any other is answered with 404.
  /// Default `/longlink/v1`.
  ///
  /// It begins with `/` and consists of visible ASCII characters without `?`.
  public var path = "/longlink/v1"
  /// The most open connections, at least 1. Default 1,000.
  ///
  /// Beyond it, the oldest connection without a request makes room for a new one, and is counted in
  /// `connectionsEvicted`; up to 64 may be closing at a time. If all run requests, the new one is
  /// closed, and counted in `connectionsTurnedAway`.
  ///
  /// Each connection holds at most 768 KiB, besides what the server holds for its request. The
  /// server also counts each request as a connection, against its own limits.
  public var maxConnections = 1_000
  /// The most time from the first byte of a request's head to its last, and from the connect to the
  /// first; above zero. Default 10 s.
  public var headTimeout: Duration = .seconds(10)
  /// How long a connection without requests is kept; above zero. Default 75 s.
  public var keepAliveTimeout: Duration = .seconds(75)
  /// The most time without a byte while the gateway waits for the client: for more of the request,
  /// or until the client reads the answer; above zero. Default 120 s.
  ///
  /// A handler may take as long as its deadline allows: time in which the client has nothing to
  /// send or to read does not count.
  public var idleTimeout: Duration = .seconds(120)
  /// The proxies in front of the gateway: addresses, or networks such as `10.0.0.0/8`. Default:
  /// none.
  ///
  /// For a connection from one of the proxies, the peer's address is the last address in
  /// `forwardedHeader` that is not a trusted proxy's. From other connections the header is ignored.
  public var trustedProxies: [String] = []
  /// The header in which the trusted proxies write addresses. Default `xForwardedFor`.
  ///
  /// The other header is ignored, because proxies pass on what a client has claimed in it.
  public var forwardedHeader = ForwardedHeader.xForwardedFor
  /// Whether the trusted proxies accept requests only over TLS. Default false.
  ///
  /// For a request from one of the proxies, `AuthenticationRequest.isEncrypted` is then true, and
  /// `security` stays nil. Set it only if each proxy refuses or redirects plain HTTP for the
  /// gateway's path, and if others cannot read the bytes between proxy and gateway. It needs
  /// `trustedProxies`: a request that bypasses them is not encrypted, whatever its headers say.
  public var isSecuredByProxy = false
  /// The number of threads that read and write HTTP, at least 1. Default 1.
  public var threads = 1
  /// The gateway's logger. Bodies and headers are never logged. Default: a logger with the label
  /// `longlink.gateway`.
  public var logger = Logger(label: "longlink.gateway")

  /// The most bytes of one header field and of all fields of a request, and the most fields.
  static let headLimits = (header: 16_384, headers: 65_536, count: 100)
  /// The most bytes of a request's target.
  static let longestTarget = 8_192

  /// The header in which proxies write the addresses of clients.
  public enum ForwardedHeader: Hashable, Sendable {
    /// `X-Forwarded-For`: addresses, the client's first.
    case xForwardedFor
    /// `Forwarded` (RFC 7239).
    case forwarded
  }

  /// Makes a configuration with the defaults.
  public init() {}

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    if host.isEmpty { throw .configuration("host", "it is empty") }
    if !(0...65_535).contains(port) { throw .configuration("port", "\(port) is not a port") }
    if !path.hasPrefix("/") || path.utf8.contains(where: { $0 <= 32 || $0 == 63 || $0 >= 127 }) {
      throw .configuration("path", "it must begin with / and contain neither ? nor spaces")
    }
    if maxConnections < 1 { throw .configuration("maxConnections", "\(maxConnections) is below 1") }
    if threads < 1 { throw .configuration("threads", "\(threads) is below 1") }
    for (field, value) in [
      ("headTimeout", headTimeout), ("keepAliveTimeout", keepAliveTimeout),
      ("idleTimeout", idleTimeout),
    ] where value <= .zero {
      throw .configuration(field, "\(value) is not above zero")
    }
    for (index, text) in trustedProxies.enumerated() where AddressRange(text) == nil {
      throw .configuration("trustedProxies[\(index)]", "\(text) is neither address nor network")
    }
    if isSecuredByProxy, trustedProxies.isEmpty {
      throw .configuration("isSecuredByProxy", "it needs the proxies' addresses in trustedProxies")
    }
  }
}
#endif
