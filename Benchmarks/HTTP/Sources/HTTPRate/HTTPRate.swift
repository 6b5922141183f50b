// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import AsyncHTTPClient
import LongLinkHTTP

/// Sends the same requests with `HTTPService` and with the client below it, in turns.
@main struct HTTPRate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "HTTPRate",
    abstract: "Compares HTTPService with async-http-client alone, against one server.")

  @Argument(help: "The URL to get.") var url: String
  @Option(help: "Requests in progress at once.") var concurrency = 8
  @Option(help: "Requests of each round.") var requests = 2_000
  @Option(help: "Rounds of each.") var rounds = 31

  func run() async throws {
    var settings = HTTPClient.Configuration(timeout: .init(connect: .seconds(10)))
    settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = concurrency
    settings.decompression = .enabled(limit: .ratio(100))
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    let service = try HTTPService(
      HTTPConfiguration(connectionsPerServer: concurrency, maxExchanges: concurrency))
    var ratios: [Double] = []
    for round in 0...rounds {
      let below = try await rate {
        let response = try await client.execute(
          HTTPClientRequest(url: url), timeout: .seconds(30))
        return try await response.body.collect(upTo: 1 << 24).readableBytes
      }
      let ours = try await rate {
        var request = HTTPRequest(.get, url)
        request.timeout = .seconds(30)
        return try await service.send(request).body.count
      }
      // The first round warms up.
      guard round > 0 else { continue }
      ratios.append(ours / below)
      print("async-http-client \(Int(below))/s, HTTPService \(Int(ours))/s: \(two(ours / below))")
    }
    ratios.sort()
    print("median \(two(ratios[rounds / 2])), \(two(ratios[0])) to \(two(ratios[rounds - 1]))")
    await service.close()
    try await client.shutdown()
  }

  private func two(_ value: Double) -> Double { (value * 100).rounded() / 100 }

  /// Requests per second.
  private func rate(_ send: @escaping @Sendable () async throws -> Int) async throws -> Double {
    let clock = ContinuousClock()
    let begin = clock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<concurrency {
        group.addTask {
          var size: Int?
          for _ in 0..<(requests / concurrency) {
            let count = try await send()
            guard size ?? count == count else { throw ValidationError("a body has another size") }
            size = count
          }
        }
      }
      try await group.waitForAll()
    }
    return Double(requests / concurrency * concurrency) / ((clock.now - begin) / .seconds(1))
  }
}
