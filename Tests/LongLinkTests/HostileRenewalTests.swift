// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Clients that renew their credentials as often, and with as much, as they can.
@Suite struct HostileRenewalTests {
  private static let largest = [UInt8](repeating: 7, count: 65_536)

  /// Connects a client that may renew its credential.
  private static func connect(
    _ stage: Stage, _ server: LongLinkServer
  ) async throws -> SimulatedClient {
    let client = try await AuthenticationTests.raw(stage, server)
    let welcome = try await client.sayHello(.hello(features: [.renewal], credential: [1]))
    #expect(welcome.features == [.renewal])
    return client
  }

  private static func codes(_ client: SimulatedClient) -> [UInt32] {
    client.record.renewals.map(\.tag)
  }

  @Test func `one that never stops is decided about once a second, and holds nothing`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let calls = Tally<Int>()
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { request in
          calls.add(request.credential?.count ?? 0)
          return .anonymous
        }
      })
      let client = try await Self.connect(stage, server)
      let begin = stage.clientLoop.clock.now
      var sent = 0
      while begin.duration(to: stage.clientLoop.clock.now) < .milliseconds(9_500) {
        try await client.renew(Self.largest)
        sent += 1
        #expect(await server.counters().bytesHeld < 200_000)
        try await stage.clientLoop.sleep(for: .milliseconds(20))
      }
      #expect(sent > 100)
      #expect(calls.elements == [1] + Array(repeating: 65_536, count: 10))
      let codes = Self.codes(client)
      #expect(codes.count { $0 == 200 } == 10 && codes.count { $0 == 429 } == sent - 10)
      let counters = await server.counters()
      #expect(counters.credentialsRenewed == 10 && counters.openConnections == 1)
    }
  }

  @Test func `many at once take no more places than clients that connect`() async throws {
    try await Stage.simulate { stage, _ in
      let (calls, goOn) = (Tally<Int>(), Latch())
      let server = try await stage.serve(configure: {
        $0.limits.maxHandshakes = 8
        $0.identity.maxAuthentications = 3
        $0.identity.timeout = .seconds(5)
        $0.identity.authenticate = { request in
          if request.credential?.count != 1 {
            calls.add(0)
            await goOn.wait()
          }
          return .anonymous
        }
      })
      var clients: [SimulatedClient] = []
      for _ in 0..<40 { clients.append(try await Self.connect(stage, server)) }
      let before = await server.counters().bytesHeld
      for client in clients { client.send(.renewal(Self.largest)) }
      try await stage.clientLoop.sleep(for: .seconds(2))
      // Three run and five wait; the others were told at once.
      #expect(calls.count == 3)
      #expect(clients.count { Self.codes($0) == [429] } == 32)
      #expect(await server.counters().bytesHeld - before <= 8 * 131_072)
      // Those that hold a place still get their answers and their requests.
      for client in clients { client.send(.request(1, serial: 50)) }
      for client in clients { #expect(try await client.waitForResponse(to: 50).code == .ok) }
      try await stage.clientLoop.sleep(for: .seconds(4))
      #expect(clients.count { Self.codes($0) == [503] } == 8)
      #expect(await server.counters().authenticationsTimedOut == 8)
      // The calls that were given up have not returned, so that no further one begins. Whoever asks
      // again gets the answer to its own question.
      for client in clients { client.send(.renewal([2, 2])) }
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(calls.count == 3)
      goOn.open()
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(calls.count == 3 + 8)
      #expect(clients.count { Self.codes($0).last == 200 } == 8)
      #expect(await server.counters().credentialsRenewed == 8)
      // All places are free again.
      for client in clients.prefix(8) { client.send(.renewal([3, 3])) }
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(await server.counters().credentialsRenewed == 16)
    }
  }

  @Test func `those of an address are decided about as fast as it may connect`() async throws {
    try await Stage.simulate { stage, _ in
      let calls = Tally<Int>()
      let server = try await stage.serve(configure: {
        $0.addresses.maxConnectionRate = 2
        $0.identity.authenticate = { _ in
          calls.add(0)
          return .anonymous
        }
      })
      var clients: [SimulatedClient] = []
      for _ in 0..<30 {
        clients.append(try await Self.connect(stage, server))
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      try await stage.clientLoop.sleep(for: .seconds(10))
      let before = calls.count
      for _ in 0..<10 {
        for client in clients { client.send(.renewal(Self.largest)) }
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      // Four seconds' worth at once, and then two per second.
      #expect((24...28).contains(calls.count - before), "\(calls.count - before)")
      #expect(await server.counters().openConnections == 30)
    }
  }

  @Test func `a place is freed by a connection that ends`() async throws {
    try await Stage.simulate { stage, _ in
      let goOn = Latch()
      let server = try await stage.serve(configure: {
        $0.limits.maxHandshakes = 1
        $0.identity.authenticate = { request in
          if request.credential == [2] { await goOn.wait() }
          return .anonymous
        }
      })
      let (first, second) = (
        try await Self.connect(stage, server), try await Self.connect(stage, server)
      )
      first.send(.renewal([2]))
      try await stage.clientLoop.sleep(for: .milliseconds(100))
      second.send(.renewal([3]))
      try await stage.clientLoop.sleep(for: .milliseconds(1_100))
      first.close()
      try await stage.until { await server.counters().openConnections == 1 }
      #expect(try await second.renew([3]).code == .ok)
      #expect(Self.codes(second) == [429, 200])
      goOn.open()
    }
  }
}
