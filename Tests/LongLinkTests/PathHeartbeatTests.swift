// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import LongLink

/// What a client knows besides its links, without any client.
@Suite struct PathHeartbeatTests {
  private final class Memory: Sendable {
    private let learned = Mutex<[String: String]>([:])

    var networks: Set<String> { learned.withLock { Set($0.keys) } }

    func load(network: String) -> String? { learned.withLock { $0[network] } }

    func store(_ learned: String, network: String) {
      self.learned.withLock { $0[network] = learned }
    }
  }

  private let memory = Memory()

  private func configuration(_ adaptive: AdaptiveHeartbeat?) -> ClientConfiguration {
    var configuration = ClientConfiguration(servers: [.host("a", port: 1)])
    configuration.adaptiveHeartbeat = adaptive
    configuration.heartbeat = Heartbeat(interval: .seconds(240), timeout: .seconds(20))
    configuration.adaptiveHeartbeat?.load = { [memory] in memory.load(network: $0) }
    configuration.adaptiveHeartbeat?.store = { [memory] in memory.store($0, network: $1) }
    return configuration
  }

  @Test func `only an adaptive heartbeat is learned`() throws {
    #expect(PathHeartbeat(configuration(nil)) == nil)
    #expect(PathHeartbeat(configuration(AdaptiveHeartbeat())) != nil)
  }

  @Test func `what is learned is kept for its network, and an earlier path tells nothing`() throws {
    var policy = AdaptiveHeartbeat()
    policy.successes = 1
    let heartbeat = try #require(PathHeartbeat(configuration(policy)))
    let first = heartbeat.pace
    heartbeat.pathChanged(network: "home")
    heartbeat.answered(after: heartbeat.pace, on: 0)
    #expect(heartbeat.pace == first)
    heartbeat.answered(after: heartbeat.pace, on: 1)
    let longer = heartbeat.pace
    #expect(longer > first)
    // The interval that is tried next proves itself; the loss that is this side's wish does not.
    heartbeat.answered(after: longer, on: 1)
    heartbeat.lost(after: heartbeat.pace, .closedHere, on: 1)
    #expect(heartbeat.pace > longer)
    #expect(memory.networks == ["home"])
    heartbeat.pathChanged(network: "train")
    #expect(heartbeat.pace == first)
    heartbeat.pathChanged(network: "home")
    #expect(heartbeat.pace == longer)
  }

  @Test func `a list of servers tells which of them were there before`() {
    let (one, two, three) = (Endpoint.host("a", port: 1), Endpoint.host("b", port: 1), "c")
    var servers = ServerDirectory([ServerEntry(one), ServerEntry(two)])
    #expect(servers[.listed(1)] == two)
    let kept = servers.replace(with: [ServerEntry(two), ServerEntry(.host(three, port: 1))])
    #expect(kept == [1, nil])
    #expect(servers[.listed(0)] == two)
    servers.take([one, two], numbered: 5..<7)
    #expect(servers[.alternative(6)] == two)
    // The machine does not go there.
    servers.take([two, one], numbered: 7..<7)
    #expect(servers[.alternative(6)] == two)
  }
}
