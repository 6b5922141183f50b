// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import Testing

/// How much of a large body stands in front of what is more urgent.
@Suite struct HeadOfLineTests {
  private static let window = 16_384
  private static let size = 16_777_216
  /// What may be written before an urgent frame: two fragments, since one body alone is never
  /// overdue, the frames of the tests, and what the thin path takes while the frame travels.
  private static let bound = 2 * 65_552 + 4_096 + 2 * window

  private static let thin = LinkConditions(
    latency: .milliseconds(5) ... .milliseconds(5), window: window)

  @Test func `pings and urgent requests pass a large request on a thin path`() async throws {
    try await Stage.simulate { stage, simulation in
      let passed = Tally<Int>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(9) { request in
          passed.add(simulation.network.links[0].bytesWritten(.toServer))
          return request.body
        }
        server.route(8) { request in [UInt8(truncatingIfNeeded: request.body.count >> 20)] }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      let link = simulation.network.links[0]
      link.setConditions(Self.thin, .toServer)
      let large = client.submit(
        8, [UInt8](repeating: 1, count: Self.size),
        options: RequestOptions(timeout: .seconds(1_000)))
      for number: UInt8 in 0..<20 {
        try await simulation.sleep(for: .milliseconds(200 + Int64(number)))
        let before = link.bytesWritten(.toServer)
        let urgent = client.submit(9, [number], options: RequestOptions(priority: 7))
        _ = try await client.ping()
        #expect(link.bytesWritten(.toServer) - before <= Self.bound)
        #expect(try await urgent.value == [number])
        #expect(passed.elements.last! - before <= Self.bound)
      }
      #expect(link.bytesWritten(.toServer) < Self.size, "the large body has left too early")
      #expect(try await large.value == [16])
    }
  }

  @Test func `urgent answers pass a large answer on a thin path`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(8) { _ in [UInt8](repeating: 1, count: Self.size) }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      let link = simulation.network.links[0]
      link.setConditions(Self.thin, .toClient)
      let large = client.submit(8, [1], options: RequestOptions(timeout: .seconds(1_000)))
      for number: UInt8 in 0..<10 {
        try await simulation.sleep(for: .milliseconds(200 + Int64(number)))
        let before = link.bytesWritten(.toClient)
        let options = RequestOptions(priority: 7)
        #expect(try await client.request(.echo, [number], options: options) == [number])
        #expect(link.bytesWritten(.toClient) - before <= Self.bound)
      }
      #expect(link.bytesWritten(.toClient) < Self.size, "the large body has left too early")
      #expect(try await large.value.count == Self.size)
    }
  }

  @Test func `an urgent large answer passes one that is not`() async throws {
    try await Stage.simulate { stage, simulation in
      let ended = Tally<UInt32>()
      let server = try await stage.serve { server in
        server.route(8) { _ in [UInt8](repeating: 1, count: 4_000_000) }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      simulation.network.links[0].setConditions(Self.thin, .toClient)
      for priority: UInt32 in [0, 5] {
        let options = RequestOptions(timeout: .seconds(1_000), priority: priority)
        client.request(8, [1], options: options, on: .connectionLoop) { _ in ended.add(priority) }
        try await simulation.sleep(for: .milliseconds(100))
      }
      await ended.reached(2)
      #expect(ended.elements == [5, 0])
    }
  }

  @Test func `a peer without fragments gets whole bodies, as many as the mark lets stand in front`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      server.handshake = .welcome(features: [])
      server.on(8, .reply([8]))
      server.on(9, .reply([9]))
      let client = try stage.client(to: [server.endpoint])
      try await client.connect()
      let link = simulation.network.links[0]
      link.setConditions(Self.thin, .toServer)
      let options = RequestOptions(timeout: .seconds(1_000))
      let size = 1_000_000
      let large = (0..<6).map { _ in
        client.submit(8, [UInt8](repeating: 1, count: size), options: options)
      }
      try await simulation.sleep(for: .milliseconds(50))
      let before = link.bytesWritten(.toServer)
      #expect(try await client.request(9, [1], options: RequestOptions(priority: 7)) == [9])
      #expect(link.bytesWritten(.toServer) - before <= 1_048_576 + size + Self.bound)
      for task in large { #expect(try await task.value == [8]) }
      await client.close()
      await server.stop()
    }
  }
}
