// SPDX-License-Identifier: Apache-2.0

import FeedMessages
import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

@testable import Feed
@testable import FeedServer

/// The feed in a simulated network, whose time is virtual.
@Suite struct SimulatedFeedTests {
  /// When each node was shown, in milliseconds, and the error.
  private func watch(_ query: Query) async throws -> (seen: [Int64], error: (any Error)?) {
    let simulation = Simulation(seed: 7)
    return try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 9020)])
      configuration.logger.logLevel = .critical
      let server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
      FeedWriter.register(with: server)
      try await server.start()
      var options = ClientConfiguration(servers: [.host("10.0.0.1", port: 9020)])
      options.logger.logLevel = .critical
      let client = try LongLinkClient(options, on: simulation.eventLoop(named: "client"))
      try await client.connect()

      let start = simulation.now.nanoseconds
      var seen: [Int64] = []
      var failure: (any Error)?
      do {
        try await FeedReader(client: client).read(query) { node in
          #expect(node.number == seen.count + 1)
          seen.append((simulation.now.nanoseconds - start) / 1_000_000)
        }
      } catch {
        failure = error
      }
      await client.close()
      await server.shutDown()
      return (seen, failure)
    }
  }

  @Test func `ten nodes a second apart appear one by one`() async throws {
    let (seen, error) = try await watch(Query(count: 10, interval: 1_000))
    #expect(error == nil)
    #expect(seen.map { $0 / 1_000 } == Array(0..<10))
  }

  @Test func `an error behind the seventh node gives seven nodes and its text`() async throws {
    let (seen, error) = try await watch(Query(count: 10, interval: 10, failsAfter: 7))
    #expect(seen.count == 7)
    #expect(error as? FeedError == FeedError(code: "5", text: "The camera has lost its network"))
  }

  @Test func `an empty feed has no node`() async throws {
    let (seen, error) = try await watch(Query(count: 0, interval: 0))
    #expect(seen.isEmpty && error == nil)
  }

  @Test(arguments: [Query(count: -1, interval: 0), Query(count: 1, interval: 60_001)])
  func `a query out of range is rejected`(_ query: Query) async throws {
    let error = try await watch(query).error as? LongLinkError
    #expect(error?.response == .malformed)
  }
}
