// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkDriver
internal import NIOCore
internal import NIOSSL

extension HTTPConfiguration {
  /// The configuration of async-http-client, whose connections get guards.
  func client(_ flights: FlightTable) throws(LongLinkError) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: try tls.configuration(),
      // `HTTPExchange` follows redirects, by the rules of this module.
      redirectConfiguration: .disallow,
      timeout: .init(connect: connectTimeout.timeAmount),
      connectionPool: HTTPClient.Configuration.ConnectionPool(
        idleTimeout: connectionIdleTimeout.timeAmount,
        concurrentHTTP1ConnectionsPerHostSoftLimit: connectionsPerServer),
      ignoreUncleanSSLShutdown: false)
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.httpVersion = offersHTTP2 ? .automatic : .http1Only
    configuration.proxy = proxy?.server
    let idle = idleTimeout.timeAmount
    configuration.http1_1ConnectionDebugInitializer = { channel in
      HTTPGuard.install(on: channel, over: .http1, flights, idle: idle)
    }
    let unused = UnusedConnections(limit: 2 * connectionsPerServer + 8)
    configuration.http2ConnectionDebugInitializer = { channel in unused.opened(channel) }
    configuration.http2StreamChannelDebugInitializer = { channel in
      unused.isUsed(channel.parent)
      return HTTPGuard.install(on: channel, over: .http2, flights, idle: idle)
    }
    return configuration
  }
}

extension HTTPProxy {
  /// The proxy as async-http-client takes it.
  var server: HTTPClient.Configuration.Proxy {
    .server(
      host: host, port: port,
      authorization: user.map { .basic(username: $0, password: password) })
  }
}

extension HTTPTLS {
  /// Returns the settings as async-http-client takes them. Throws `invalidConfiguration`, which
  /// names the field.
  func configuration() throws(LongLinkError) -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    if !additionalRoots.isEmpty {
      var roots: [NIOSSLCertificate] = []
      for source in additionalRoots {
        roots += try read("tls.additionalRoots") { try source.certificates() }
      }
      configuration.additionalTrustRoots = [.certificates(roots)]
    }
    if let certificate {
      configuration.certificateChain = try read("tls.certificate") {
        try certificate.certificates().map { .certificate($0) }
      }
    }
    guard (certificate == nil) == (privateKey == nil) else {
      throw .configuration("tls.privateKey", "a certificate and a key go together")
    }
    if let privateKey {
      configuration.privateKey = .privateKey(
        try read("tls.privateKey") {
          switch privateKey {
          case .file(let path): try NIOSSLPrivateKey(file: path, format: .pem)
          case .pem(let text): try NIOSSLPrivateKey(bytes: Array(text.utf8), format: .pem)
          }
        })
    }
    return configuration
  }

  private func read<Value>(
    _ field: String, _ body: () throws -> Value
  ) throws(LongLinkError) -> Value {
    do {
      return try body()
    } catch {
      throw .configuration(field, "it cannot be read: \(error)")
    }
  }
}

extension HTTPTLS.Source {
  fileprivate func certificates() throws -> [NIOSSLCertificate] {
    switch self {
    case .file(let path): try NIOSSLCertificate.fromPEMFile(path)
    case .pem(let text): try NIOSSLCertificate.fromPEMBytes(Array(text.utf8))
    }
  }
}

extension Duration {
  /// The duration as async-http-client takes it, at most about 292 years.
  var timeAmount: TimeAmount {
    let (seconds, rest) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflows ? .nanoseconds(.max) : .nanoseconds(whole + rest / 1_000_000_000)
  }
}
#endif
