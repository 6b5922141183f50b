// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

extension Way {
  /// Where the gateway of a stage listens.
  static let gatewayAddress = SocketAddress.ipv4(10, 0, 0, 1, port: 8_080)
  static let gatewayName = "short://10.0.0.1:8080"
  /// Short links to the gateway of a stage.
  static let short = Way.simulatedShort(to: gatewayAddress)
}

extension LongLinkServer {
  /// The basics and streams: 10 sends so many items, of a byte or of so many hundreds; 11 adds the
  /// sizes of items up, 12 sends them back, 13 ends in an error, 14 answers early, 15 has no end.
  func routeStreams() {
    routeBasics()
    routeStream(10, .responseItems) { request, _, writer in
      let size = request.body.count > 1 ? Int(request.body[1]) * 100 : 1
      for number in 0..<request.body[0] {
        try await writer.write([UInt8](repeating: number, count: size))
      }
      return Array("done".utf8)
    }
    routeStream(11, .requestItems) { _, items, _ in
      var sum = 0
      for try await item in items { sum += item.count }
      return Array("\(sum)".utf8)
    }
    routeStream(12, [.requestItems, .responseItems]) { _, items, writer in
      for try await item in items { try await writer.write(item) }
      return []
    }
    routeStream(13, .responseItems) { _, _, writer in
      try await writer.write([1])
      try await writer.write([2])
      throw Rejection(1_234, body: [9])
    }
    routeStream(14, .requestItems) { _, items, _ in
      for try await _ in items { return Array("enough".utf8) }
      return []
    }
    routeStream(15, .responseItems) { _, _, writer in
      while true { try await writer.write([UInt8](repeating: 7, count: 1_000)) }
    }
  }
}

extension LongLinkClient {
  /// Sends a request that the server echoes.
  func expectEcho(_ body: [UInt8]) async throws {
    let answer = try await request(.echo, body)
    #expect(answer == body)
  }

  /// How many requests went over short links.
  func shortRequests() async -> UInt64 {
    await counters().shortLinkRequests.values.reduce(0, +)
  }
}

extension Stage {
  /// A client of the gateway whose first short links are cut.
  func client(
    cutting cuts: [CuttingOpener.Cut], besides ways: [Way] = [],
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> LongLinkClient {
    try client(to: []) {
      $0 = ClientConfiguration(
        ways: [Way(short: CuttingOpener(to: Way.gatewayAddress, cuts))] + ways)
      $0.logger.logLevel = .critical
      configure(&$0)
    }
  }

  /// Has the network cut the long link at a request, when it takes some. The next one stands a
  /// trial: of `timeouts.connect` after the first cut, of twice as long after each further one.
  func cut(_ server: LongLinkServer, _ client: LongLinkClient) async throws {
    try await client.connect()
    try await until { client.state.isConnected }
    let hanging = try await hang(client, on: server)
    for link in simulation!.network.links(to: server.addresses[0]) { link.lose() }
    let error = try await failure { try await hanging.value }
    #expect(error.delivery == .sent)
    try await until { await server.peers().isEmpty }
  }

  /// Waits until a long link stands a trial.
  func trial(of server: LongLinkServer) async throws {
    try await until { await server.peers().count == 1 }
  }

  /// Waits for the next link, whose trial has to last for so many seconds.
  func expectTrial(
    of seconds: Double, _ server: LongLinkServer, _ client: LongLinkClient,
    _ location: SourceLocation = #_sourceLocation
  ) async throws {
    try await trial(of: server)
    #expect(!client.state.isConnected, sourceLocation: location)
    let start = clientLoop.clock.now
    try await until { client.state.isConnected }
    let time = start.duration(to: clientLoop.clock.now) / .seconds(1)
    // The conditions are looked at every 0.2 s at least.
    #expect(abs(time - seconds) < 0.3, "\(time) s", sourceLocation: location)
  }
}

/// A credential that changes while a test runs, and how often it was used.
final class Key: Sendable {
  private let state: Mutex<String>
  let uses = Tally<Void>()

  init(_ text: String = "wrong") {
    state = Mutex(text)
  }

  var text: String {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  var bytes: [UInt8] { Array(text.utf8) }

  /// The credential, as the application gives it to a client.
  func use() -> [UInt8] {
    uses.add(())
    return bytes
  }
}
