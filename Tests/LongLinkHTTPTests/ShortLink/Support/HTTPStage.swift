// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkHTTPServer
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// A server with a gateway, and its clients.
final class HTTPStage: Sendable {
  let server: LongLinkServer
  let gateway: LongLinkHTTPGateway
  let port: Int
  /// How often a handler has begun, by what its request said.
  let begun = Watched<[String: Int]>([:])
  /// How many handlers of `hang` were cancelled.
  let cancelled = Watched(0)
  private let clients = Mutex<[LongLinkClient]>([])

  static let echo: MessageType = 1
  static let hang: MessageType = 2
  static let refuse: MessageType = 3
  static let address: MessageType = 4
  /// Returns the name of the principal, or `nobody`.
  static let principal: MessageType = 5
  /// Echoes, for editors alone.
  static let edit: MessageType = 6
  static let count: MessageType = 10
  static let sum: MessageType = 11
  static let early: MessageType = 12
  static let endless: MessageType = 13
  static let steps: MessageType = 14
  static let large: MessageType = 15
  static let medium: MessageType = 16
  static let largeBytes = 8_000_000

  private init(
    _ server: LongLinkServer, _ gateway: LongLinkHTTPGateway
  ) async throws {
    self.server = server
    self.gateway = gateway
    let begun = begun
    let cancelled = cancelled
    Self.route(server, begun, cancelled)
    Self.routeIdentity(server)
    try await server.start()
    port = Int(try await gateway.start().port ?? 0)
  }

  /// Runs a body with a server and a gateway, and closes everything behind it.
  static func run(
    _ configure: (inout HTTPGatewayConfiguration) -> Void = { _ in },
    server configureServer: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (HTTPStage) async throws -> Void
  ) async throws {
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    configureServer(&configuration)
    let server = try LongLinkServer(configuration)
    var settings = HTTPGatewayConfiguration()
    settings.logger.logLevel = .critical
    configure(&settings)
    let gateway = try LongLinkHTTPGateway(for: server, settings)
    let stage = try await HTTPStage(server, gateway)
    do {
      try await body(stage)
      await stage.close()
    } catch {
      await stage.close()
      throw error
    }
  }

  private func close() async {
    for client in clients.withLock({ $0 }) { await client.close(within: .zero) }
    await gateway.shutDown(within: .zero)
    await server.shutDown(within: .zero)
  }

  var url: String { "http://127.0.0.1:\(port)/longlink/v1" }

  /// A client that goes over HTTP alone, or behind the long link to `longPort`.
  func client(
    url: String? = nil, longPort: Int? = nil, options: HTTPWayOptions = HTTPWayOptions(),
    _ configure: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> LongLinkClient {
    let way = try Way.http(url: url ?? self.url, options: options)
    var configuration = ClientConfiguration(ways: [way])
    if let longPort {
      configuration = ClientConfiguration(
        servers: [Endpoint.host("127.0.0.1", port: UInt16(longPort))])
      configuration.ways = [.longLink, way]
    }
    configuration.logger.logLevel = .critical
    configure(&configuration)
    let client = try LongLinkClient(configuration)
    clients.withLock { $0.append(client) }
    return client
  }

  private static func routeIdentity(_ server: LongLinkServer) {
    server.route(principal) { request in Array((request.peer.principal?.name ?? "nobody").utf8) }
    server.route(edit, requires: .attribute("role", "editor")) { request in request.body }
  }

  private static func route(
    _ server: LongLinkServer, _ begun: Watched<[String: Int]>, _ cancelled: Watched<Int>
  ) {
    server.route(echo) { request in
      let name = String(decoding: request.body.prefix(40), as: UTF8.self)
      begun.change { $0[name, default: 0] += 1 }
      return request.body
    }
    server.route(hang) { request async throws -> [UInt8] in
      begun.change { $0["hang", default: 0] += 1 }
      let (never, continuation) = AsyncStream<Void>.makeStream()
      // Only a cancel ends it.
      for await _ in never {}
      continuation.finish()
      cancelled.change { $0 += 1 }
      throw CancellationError()
    }
    server.route(medium) { _ in [UInt8](repeating: 5, count: 20_000) }
    server.route(large) { _ in
      begun.change { $0["large", default: 0] += 1 }
      return [UInt8](repeating: 5, count: largeBytes)
    }
    server.route(refuse) { _ -> [UInt8] in throw Rejection(1_234, body: [9]) }
    server.route(address) { request in Array((request.peer.address?.host ?? "").utf8) }
    server.routeStream(count, .responseItems) { request, _, writer in
      for number in 0..<Int(request.body[0]) { try await writer.write([UInt8(number)]) }
      return Array("done".utf8)
    }
    server.routeStream(sum, .requestItems) { _, items, _ in
      var sum = 0
      for try await item in items {
        sum += item.count
        let now = sum
        begun.change { $0["summed"] = now }
      }
      return Array("\(sum)".utf8)
    }
    server.routeStream(early, .requestItems) { _, items, _ in
      for try await _ in items { return Array("enough".utf8) }
      return []
    }
    server.routeStream(endless, .responseItems) { _, _, writer in
      do {
        while true { try await writer.write([UInt8](repeating: 7, count: 10_000)) }
      } catch {
        cancelled.change { $0 += 1 }
        throw error
      }
    }
    // An item for each call of the test: it waits for the next one.
    server.routeStream(steps, .responseItems) { request, _, writer in
      for number in 1...Int(request.body[0]) {
        await begun.until { $0["step", default: 0] >= number }
        try await writer.write([UInt8(number)])
      }
      return []
    }
  }
}
#endif
