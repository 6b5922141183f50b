// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Telemetry
import Testing

@testable import HubServer

@Test func `a watcher sees each reading of half a day`() async throws {
  let simulation = Simulation(seed: 1)
  try await simulation.run {
    let server = try LongLinkServer(
      listen: .host("10.0.0.1", port: 9000), on: [simulation.eventLoop(named: "server")])
    server.register(hub: Hub())
    try await server.start()
    let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
    let hub = HubClient(client)
    let reports = simulation.spawn {
      try await hub.report { writer in
        for hour in 1...12 {
          try await simulation.sleep(for: .seconds(3600))
          try await writer.write(Reading(device: "oven", celsius: Double(hour)))
        }
      }
    }
    let watch = hub.watch(resuming: { WatchRequest(after: $0?.number ?? 0) }).prefix(12)
    #expect(try await watch.reduce(0) { $0 + $1.celsius } == 78)
    #expect(try await reports.value.count == 12)
    await client.close()
    await server.shutDown()
  }
}
