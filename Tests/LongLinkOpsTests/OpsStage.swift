// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkOps
import LongLinkServer
import Logging
import Synchronization
import Testing

/// A server with an operations port, and its clients.
final class OpsStage: Sendable {
  let server: LongLinkServer
  let operations: OperationsPort
  let port: Int
  private let clients = Mutex<[LongLinkClient]>([])

  static let echo = RPCMethod<[UInt8], [UInt8]>(1, "Echo")
  /// Answers with the code in its two bytes.
  static let fail = RPCMethod<[UInt8], [UInt8]>(2, "Fail", of: "test.Stage")
  /// Ends when it is cancelled.
  static let hang = RPCMethod<[UInt8], [UInt8]>(3, "Hang")
  /// Has no name.
  static let unnamed: MessageType = 4
  /// Writes items of 1,000 bytes without end.
  static let endless: MessageType = 5

  private init(_ server: LongLinkServer, _ operations: OperationsPort, _ port: Int) {
    self.server = server
    self.operations = operations
    self.port = port
  }

  /// Runs a body with a server and its port, and closes everything behind it.
  static func run(
    _ configure: (inout OperationsConfiguration) -> Void = { _ in },
    server configureServer: (inout ServerConfiguration) -> Void = { _ in },
    starts: Bool = true, routes: (LongLinkServer) -> Void = { _ in },
    _ body: (OpsStage) async throws -> Void
  ) async throws {
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    configureServer(&configuration)
    let server = try LongLinkServer(configuration)
    route(server)
    routes(server)
    var settings = OperationsConfiguration()
    settings.logger.logLevel = .critical
    configure(&settings)
    let operations = try OperationsPort(for: server, settings)
    let port = Int(try await operations.start().port ?? 0)
    if starts { try await server.start() }
    let stage = OpsStage(server, operations, port)
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
    await server.shutDown(within: .zero)
    await operations.shutDown()
  }

  private static func route(_ server: LongLinkServer) {
    server.route(echo) { body, _ in body }
    server.route(fail) { body, _ throws -> [UInt8] in
      let number = body.reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
      throw Rejection(ResponseCode(integerLiteral: number), "no")
    }
    server.route(hang) { _, request async throws -> [UInt8] in
      try await request.clock.sleep(for: .seconds(3_600))
      return []
    }
    server.route(unnamed) { $0.body }
    server.routeStream(endless, .responseItems) { _, _, writer in
      while true { try await writer.write([UInt8](repeating: 7, count: 1_000)) }
    }
  }

  /// A client of the server, which is connected.
  func client(
    _ configure: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [server.endpoint])
    configuration.logger.logLevel = .critical
    configure(&configuration)
    let client = try LongLinkClient(configuration)
    clients.withLock { $0.append(client) }
    try await client.connect()
    return client
  }

  // MARK: Requests to the port

  /// Sends a request on a connection of its own.
  func send(
    _ method: String, _ path: String, accept: String? = nil, host: String? = "localhost",
    _ headers: [String] = [], body: String? = nil
  ) async throws -> PortReply {
    let peer = try await RawPeer.connect(to: port)
    defer { peer.close() }
    var lines = ["\(method) \(path) HTTP/1.1", "Connection: close"] + headers
    if let host { lines.append("Host: \(host)") }
    if let accept { lines.append("Accept: \(accept)") }
    if let body { lines.append("Content-Length: \(body.utf8.count)") }
    peer.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
    return try #require(PortReply(await peer.hearsEnd()))
  }

  /// Gets a page.
  func request(
    _ path: String, accept: String? = nil, host: String? = "localhost", _ headers: [String] = []
  ) async throws -> PortReply {
    try await send("GET", path, accept: accept, host: host, headers)
  }

  /// Gets a page as JSON.
  func json<Value: Decodable>(
    _ path: String, as type: Value.Type = Value.self
  ) async throws -> Value {
    try await request(path, accept: "application/json").json()
  }

  /// Gets the value of a metric; nil if there is none.
  func metric(_ name: String) async throws -> Double? {
    try await request("/metrics").metric(name)
  }
}

/// Waits until something is so.
func until(
  _ condition: () async throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  for _ in 0..<20_000 {
    if try await condition() { return }
    try await Task.sleep(for: .milliseconds(3))
  }
  Issue.record("it does not come about", sourceLocation: sourceLocation)
}
#endif
