// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
public import LongLink
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

extension Way {
  /// Makes a way of short links over HTTP: each request or stream is one `POST` to a gateway.
  ///
  /// `url` is the gateway's, with its path: `https://example.com/longlink/v1`. The way owns the
  /// connections, and one thread for them, from the first request on; they end when the last client
  /// and configuration that hold the way are gone. Throws `invalidConfiguration`, with the field's
  /// name, if the URL or an option is invalid, or if a certificate or key cannot be read.
  public static func http(
    url: String, options: HTTPWayOptions = HTTPWayOptions()
  ) throws(LongLinkError) -> Way {
    Way(short: try HTTPShortLinks(url: url, options: options))
  }
}

/// Opens short links over HTTP.
final class HTTPShortLinks: ShortLinkOpener {
  let name: String
  let isConfidential: Bool
  private let url: String
  private let headers: HTTPHeaders
  private let configuration: HTTPClient.Configuration
  private let engine = Mutex<HTTPEngine?>(nil)

  /// The content type of frames.
  static let contentType = "application/vnd.longlink"

  init(url: String, options: HTTPWayOptions) throws(LongLinkError) {
    try options.validate()
    do {
      let request = try HTTPClient.Request(url: url, method: .POST)
      // To a proxy, which is another machine, names such as `localhost` mean itself.
      isConfidential =
        request.scheme == "https"
        || options.proxy == nil && HTTPShortLinks.isThisMachine(request.host)
      guard request.scheme == "http" || request.scheme == "https" else {
        throw Self.notOfGateway(url)
      }
    } catch let error as LongLinkError {
      throw error
    } catch {
      throw Self.notOfGateway(url)
    }
    self.url = url
    // A password in the URL must not get into logs.
    name = Self.withoutCredentials(url)
    var headers = HTTPHeaders(options.headers.map { ($0.name, $0.value) })
    headers.add(name: "Content-Type", value: Self.contentType)
    headers.add(name: "Accept", value: Self.contentType)
    self.headers = headers
    configuration = try options.clientConfiguration()
  }

  private static func isThisMachine(_ host: String) -> Bool {
    host == "localhost" || SocketAddress(literal: host, port: 0)?.group?.isLoopback ?? false
  }

  private static func notOfGateway(_ url: String) -> LongLinkError {
    .configuration(
      "url",
      "\"\(HTTPAddress.shown(url))\" is no URL of a gateway: it must begin with http:// or"
        + " https://, and have a host")
  }

  private static func withoutCredentials(_ url: String) -> String {
    guard let start = url.firstRange(of: "://")?.upperBound else { return url }
    let authority = url[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let mark = authority.lastIndex(of: "@") else { return url }
    return String(url[..<start] + url[url.index(after: mark)...])
  }

  func open(on loop: LongLinkTransport.EventLoop) throws(SocketError) -> any Transport {
    let engine = engine.withLock(of: self) { engine in
      if let engine { return engine }
      let made = HTTPEngine(configuration)
      engine = made
      return made
    }
    var request: HTTPClient.Request
    do {
      request = try HTTPClient.Request(url: url, method: .POST, headers: headers)
    } catch {
      preconditionFailure("the URL was valid when the way was made: \(error)")
    }
    let bridge = TransportBridge(isConnected: false)
    let exchange = ShortLinkPost(bridge, engine: engine)
    request.body = .stream { writer in exchange.bodyIsWanted(writer) }
    let stream = BridgedTransport(bridge, carrier: exchange, on: loop)
    exchange.start(request)
    return stream
  }
}

/// The HTTP client of one way, and the thread that it runs on.
final class HTTPEngine: Sendable {
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  let client: HTTPClient
  let loop: any NIOCore.EventLoop

  init(_ configuration: HTTPClient.Configuration) {
    client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    loop = group.next()
  }

  deinit {
    client.shutdown { [client, group] _ in
      // Referenced until here, because the client must not be released before it has shut down.
      _ = client
      group.shutdownGracefully { _ in }
    }
  }
}
#endif
