// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLink
import LongLinkCore
import LongLinkDialects
import LongLinkServer
import LongLinkTestSupport

/// A client and a server that talk to each other over loopback, and what both have sent.
enum RecordedRun {
  typealias Connection = [(sender: Role, bytes: [UInt8])]

  /// What long bodies end with, and nothing else that is sent holds many of.
  static let filler: UInt8 = 0x41

  /// Requests side by side, errors, a push and a cancel, as far as the protocol has them.
  static func connection(
    _ dialect: FrameDialect?, echo: MessageType, push: MessageType, largest: Int
  ) async throws -> Connection {
    let width =
      dialect.flatMap { $0.layout.request.header.first { $0.meaning == .token }?.width } ?? 0
    var serving = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    serving.logger.logLevel = .error
    serving.dialect = dialect.map { .custom($0) } ?? .native
    let server = try LongLinkServer(serving)
    server.route(echo) { request in request.body }
    server.route(MessageType(tag: echo.rawValue + 1)) { _ in
      throw Rejection(.overloaded, "")
    }
    server.route(MessageType(tag: echo.rawValue + 2)) { request in
      try await request.peer.push(push, [1, 2, 3])
      try await request.clock.sleep(for: .seconds(100))
      return [UInt8]()
    }
    try await server.start()
    let relay = try RecordingRelay(to: server.addresses.first?.port ?? 0)
    defer { relay.close() }
    var asking = ClientConfiguration(servers: [.host("127.0.0.1", port: relay.port)])
    asking.logger.logLevel = .error
    asking.dialect =
      dialect.map { .custom($0, token: [UInt8](repeating: 0x53, count: width)) } ?? .native
    let client = try LongLinkClient(asking)
    var pushes = client.pushes(of: push).makeAsyncIterator()
    try await client.connect()
    let sizes = [0, 1, 7, largest / 2, largest]
    // The first half looks like delimiters, the second like nothing else that is sent.
    let bodies = sizes.map { size in
      [UInt8](repeating: 0x0D, count: size / 2) + [UInt8](repeating: filler, count: size - size / 2)
    }
    let tasks = bodies.map { client.submit(echo, $0) }
    for task in tasks { _ = try await task.value }
    _ = try? await client.request(MessageType(tag: echo.rawValue + 1), [])
    _ = try? await client.request(MessageType(tag: echo.rawValue + 3), [])
    if dialect == nil { _ = try await client.ping() }
    let slow = client.submit(
      MessageType(tag: echo.rawValue + 2), [],
      options: RequestOptions(cancelsAtPeer: true))
    _ = await pushes.next()
    slow.cancel()
    _ = try? await slow.value
    // What follows on the connection shows that the cancel has left before it.
    _ = try await client.request(echo, [9])
    await client.close()
    await server.shutDown(within: .zero)
    return relay.connections.first ?? []
  }
}
