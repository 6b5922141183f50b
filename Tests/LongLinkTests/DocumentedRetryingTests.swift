// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// The code of the page about failures, so that it is compiled.
private enum DocumentedRetrying {
  /// Places an order. One that may have been placed is not placed again.
  static func place(
    _ order: [UInt8], through client: LongLinkClient, on clock: some Clock<Duration>
  ) async throws -> [UInt8] {
    for _ in 1..<10 {
      do {
        return try await client.request(10, order)
      } catch {
        guard error.delivery.isSafeToRetry else { throw error }  // It may have been placed.
        try await clock.sleep(for: error.retryAfter ?? .seconds(30))
      }
    }
    return try await client.request(10, order)
  }
}

/// What the page about failures shows is what is compiled, and does what the page says.
@Suite struct DocumentedRetryingTests {
  @Test func `the code of the page about failures is compiled`() throws {
    let here = URL(filePath: #filePath)
    let page = here.deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Sources/LongLink/LongLink.docc/Failures.md")
    func lines(_ file: URL) throws -> [String] {
      try String(contentsOf: file, encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
    let code = try lines(here).map {
      $0.hasPrefix("static func") ? String($0.dropFirst("static ".count)) : $0
    }
    let text = try lines(page)
    let start = try #require(text.firstIndex(of: "```swift"))
    let end = try #require(text[start...].firstIndex(of: "```"))
    let piece = Array(text[(start + 1)..<end])
    #expect(code.indices.contains { code[$0...].starts(with: piece) })
    #expect(text.count { $0 == "```swift" } == 1)
  }

  @Test func `an order waits for its server, and one that may have been placed is not repeated`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let placed = Tally<[UInt8]>()
      let endpoint = Endpoint.host("10.0.0.1", port: 7_000)
      let client = try stage.client(to: [endpoint]) { $0.timeouts.request = .seconds(5) }
      let order = stage.spawn {
        try await DocumentedRetrying.place([1], through: client, on: stage.clientLoop.clock)
      }
      try await stage.clientLoop.sleep(for: .seconds(100))
      _ = try await stage.serve(
        at: endpoint,
        setUp: { server in
          server.route(10) { request in
            placed.add(request.body)
            if request.body == [2] { try await request.clock.sleep(for: .seconds(1_000)) }
            return request.body
          }
        })
      #expect(try await order.value == [1])
      // The deadline passes while its handler runs.
      let error = try await failure {
        try await DocumentedRetrying.place([2], through: client, on: stage.clientLoop.clock)
      }
      #expect(error.delivery == .sent, "\(error)")
      #expect(placed.elements == [[1], [2]])
    }
  }
}
