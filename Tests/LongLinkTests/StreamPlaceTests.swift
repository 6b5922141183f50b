// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// A stream counts towards the concurrent requests of its connection exactly until its handler has
/// returned, however it ends.
@Suite struct StreamPlaceTests {
  /// A handler that returns while its item still waits for credit.
  private static func routes(_ server: LongLinkServer) {
    server.routeBasics()
    server.routeStream(10, .responseItems) { request, _, writer in
      try await writer.write([UInt8](repeating: 1, count: 1_000))
      await withTaskGroup(of: Void.self) { group in
        group.addTask { try? await writer.write([UInt8](repeating: 1, count: 5_000)) }
        try? await request.clock.sleep(for: .seconds(1))
        // The connection has taken the item; only the wait for it ends.
        group.cancelAll()
      }
      return []
    }
  }

  /// How a stream ends while its item waits and its handler has returned.
  enum Ending: CaseIterable {
    case cancel
    case deadline
  }

  @Test(arguments: Ending.allCases)
  func `a stream that ends after its handler has returned frees its place`(
    _ ending: Ending
  ) async throws {
    try await Stage.serving(Self.routes, server: { $0.limits.maxInFlight = 1 }) {
      stage, server, client in
      try await client.connect()
      var options = StreamOptions(window: 1_024)
      if ending == .deadline { options.timeout = .seconds(5) }
      let stream = client.stream(10, [], options: options)
      var iterator: Items<[UInt8]>? = stream.makeAsyncIterator()
      #expect(iterator != nil)
      try await stage.clientLoop.sleep(for: .seconds(3))
      #expect(await server.counters().requestsRunning == 1)
      if ending == .cancel { iterator = nil }
      try await stage.clientLoop.sleep(for: .seconds(5))
      #expect(await server.counters().requestsRunning == 0)
      let reply = try await client.request(.echo, [7])
      #expect(reply == [7])
    }
  }
}
