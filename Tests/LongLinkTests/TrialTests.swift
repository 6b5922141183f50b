// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

/// Networks that let a long link be made and cut it, and the trial that the next one stands.
@Suite struct TrialTests {
  /// What a network does to long links that it lets be made.
  enum Cut: CaseIterable {
    case afterTheHandshake
    case atTheFirstRequest
    /// It swallows what comes after a while; requests are rare.
    case silently
  }

  @Test(arguments: Cut.allCases)
  func `where the network cuts long links, few requests are lost, and others take short ones`(
    _ cut: Cut
  ) async throws {
    let timeout: Duration = cut == .silently ? .seconds(10) : .seconds(3)
    try await Stage.pair(in: .bothWays, client: { $0.timeouts.connect = timeout }) {
      stage, server, client in
      let network = try #require(stage.simulation?.network)
      let address = server.addresses[0]
      network.setConditions(
        LinkConditions(latency: .milliseconds(20) ... .milliseconds(20)), to: address)
      var lost = 0
      for _ in 0..<(cut == .silently ? 120 : 600) {
        let body = [UInt8](repeating: 1, count: 2_000)
        let task = client.submit(.echo, body, options: RequestOptions())
        let next = stage.clientLoop.clock.now.advanced(by: .seconds(1))
        while stage.clientLoop.clock.now < next {
          for link in network.links(to: address) {
            switch cut {
            case .afterTheHandshake where client.state.isConnected: link.lose()
            case .afterTheHandshake, .atTheFirstRequest:
              if link.bytesWritten(.toServer) > 1_000 { link.lose() }
            case .silently: if link.bytesWritten(.toServer) > 1_000 { link.silence() }
            }
          }
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
        do { _ = try await task.value } catch { lost += 1 }
        if cut == .silently { try await stage.clientLoop.sleep(for: .seconds(59)) }
      }
      // Without trials, more than a hundred.
      #expect(lost < (cut == .silently ? 20 : 10), "\(lost) were lost")
      if cut != .silently { #expect(await client.shortRequests() > 580) }
    }
  }

  @Test func `a long link that was cut takes the requests again after its trial`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      let hanging = try await stage.hang(client, on: server)
      stage.simulation?.network.loseAllLinks()
      let error = try await failure { try await hanging.value }
      #expect(error.delivery == .sent)
      let start = stage.clientLoop.clock.now
      try await client.expectEcho([1])
      #expect(start.duration(to: stage.clientLoop.clock.now) < .milliseconds(100))
      #expect(await client.shortRequests() == 1)
      try await client.connect()
      #expect(client.state == .short(Way.gatewayName))
      try await stage.until { client.state.isConnected }
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time > .seconds(3) && time < .seconds(6))
      try await client.expectEcho([2])
      #expect(await client.shortRequests() == 1)
      let counters = await client.counters()
      #expect(counters.connects == 2 && counters.trialsPassed == 1 && counters.trialsFailed == 0)
    }
  }

  // MARK: What ends the suspicion

  @Test(arguments: [false, true])
  func `a link that has answered ends the suspicion, however it is left`(
    _ isLost: Bool
  ) async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      try await stage.cut(server, client)
      try await stage.expectTrial(of: 3, server, client)
      try await client.expectEcho([1])
      if isLost {
        stage.simulation?.network.loseAllLinks()
        try await stage.until { !client.state.isConnected }
      } else {
        await client.suspend()
        client.resume()
      }
      try await stage.cut(server, client)
      try await stage.expectTrial(of: 3, server, client)
      try await stage.cut(server, client)
      try await stage.expectTrial(of: 6, server, client)
    }
  }

  @Test(arguments: [false, true])
  func `a link whose items arrive, or of whose items the server took many, has answered`(
    isWriter: Bool
  ) async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      let loses = Latch()
      let first = stage.spawn {
        guard isWriter else {
          _ = try await client.exchange(12, []) { items, writer in
            var iterator = items.makeAsyncIterator()
            try await writer.write([1])
            #expect(try await iterator.next() == [1])
            loses.open()
            _ = try await iterator.next()
          }
          return
        }
        _ = try await client.sendItems(11, []) { writer in
          for _ in 0..<40 { try await writer.write([UInt8](repeating: 1, count: 100_000)) }
          loses.open()
          while true {
            try await writer.write([1])
            try await stage.clientLoop.sleep(for: .milliseconds(10))
          }
        }
      }
      await loses.wait()
      stage.simulation?.network.loseAllLinks()
      _ = try await failure { try await first.value }
      if isWriter {
        try await client.expectEcho([2])
      } else {
        try await Self.exchange(client)
      }
      #expect(await client.shortRequests() == 0)
    }
  }

  /// An exchange, which short links cannot carry.
  private static func exchange(_ client: LongLinkClient) async throws {
    let response = try await client.exchange(12, []) { items, writer in
      var iterator = items.makeAsyncIterator()
      try await writer.write([2])
      #expect(try await iterator.next() == [2])
    }
    #expect(response == [])
  }

  @Test func `the cuts of other servers' links say nothing about new ones`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      try await stage.cut(server, client)
      stage.simulation?.network.setConnects(.refused, to: server.addresses[0])
      let other = try await stage.serve()
      try client.switchServers(to: other.endpoints.map { ServerEntry($0) })
      try await stage.until { client.state.isConnected }
      #expect(await client.counters().trialsPassed == 0)
    }
  }

  @Test func `each server's links have a trial of their own length`() async throws {
    try await Stage.simulate { stage, simulation in
      let servers = [
        try await stage.serve(), try await stage.serve(),
      ]
      _ = try await stage.gateway(for: servers[0])
      let client = try stage.client(of: servers[0], servers[1]) {
        $0.ways = [.longLink, .short]
        $0.timeouts.connect = .seconds(3)
      }
      for (server, seconds) in [(0, 0.0), (1, 3), (0, 3), (0, 6), (1, 3)] {
        let addresses = servers.map { $0.addresses[0] }
        simulation.network.setConnects(nil, to: addresses[server])
        simulation.network.setConnects(.refused, to: addresses[1 - server])
        if seconds > 0 {
          try await stage.expectTrial(of: seconds, servers[server], client)
        }
        try await stage.cut(servers[server], client)
      }
    }
  }

  // MARK: During a trial

  @Test func `a link that does not answer when its time is over takes no requests`() async throws {
    let lines = LogLines()
    try await Stage.pair(in: .bothWays, client: { $0.logger = lines.logger }) {
      stage, server, client in
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      for link in stage.simulation!.network.links(to: server.addresses[0]) { link.silence() }
      for _ in 0..<10 {
        try await client.expectEcho([1])
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      #expect(await client.counters().connects == 1)
      try await stage.until { await client.counters().trialsFailed == 1 }
      #expect(lines.all("The link ended in its trial").count == 1)
      #expect(await client.counters().failedAttempts == 0)
      try await client.expectEcho([1])
    }
  }

  @Test func `an exchange ends the trial, because no short link can carry it`() async throws {
    try await Stage.pair(in: .bothWays, client: { $0.timeouts.connect = .seconds(30) }) {
      stage, server, client in
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      try await client.expectEcho([1])
      #expect(!client.state.isConnected)
      try await Self.exchange(client)
      #expect(client.state.isConnected)
      #expect(await client.shortRequests() == 1)
    }
  }

  @Test func `requests that get no answer over short links end the trial`() async throws {
    try await Stage.pair(in: .bothWays, client: { $0.timeouts.connect = .seconds(30) }) {
      stage, server, client in
      let network = try #require(stage.simulation?.network)
      let gateway = Way.gatewayAddress
      network.setConditions(
        LinkConditions(latency: .milliseconds(20) ... .milliseconds(20)), to: gateway)
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      for _ in 0..<3 {
        #expect(!client.state.isConnected)
        let body = [UInt8](repeating: 1, count: 2_000)
        let task = client.submit(.echo, body, options: RequestOptions())
        for _ in 0..<20 {
          for link in network.links(to: gateway) where link.bytesWritten(.toServer) > 1_000 {
            link.lose()
          }
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
        let error = try await failure { try await task.value }
        #expect(error.delivery == .sent)
      }
      #expect(client.state.isConnected)
      try await client.expectEcho([1])
    }
  }
}
