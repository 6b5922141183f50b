// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// How long a server waits for the rest of a message.
@Suite struct FragmentTimeTests {
  private static func client(
    of stage: Stage, waiting limit: Duration
  ) async throws -> SimulatedClient {
    let server = try await stage.serve(configure: { $0.timeouts.message = limit })
    let client = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
    try await client.sayHello()
    return client
  }

  @Test(arguments: [Duration.seconds(2), .seconds(200)])
  func `a request whose next fragment does not come is refused`(_ limit: Duration) async throws {
    try await Stage.simulate { stage, simulation in
      let client = try await Self.client(of: stage, waiting: limit)
      let begin = simulation.now
      client.send(WireFrame(.request, tag: 1, serial: 5_000, moreFollows: true, body: [1]))
      try await client.wait { !$0.responses.isEmpty }
      let time = begin.duration(to: simulation.now)
      #expect(client.responses[0].code == .deadlinePassed)
      #expect(time >= limit && time < limit * 1.5)
      // The connection goes on.
      #expect(try await client.request(1, [7]).body == [7])
    }
  }

  @Test(arguments: [Duration.seconds(2), .seconds(200)])
  func `a push whose next fragment does not come ends the connection`(
    _ limit: Duration
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let client = try await Self.client(of: stage, waiting: limit)
      let begin = simulation.now
      client.send(WireFrame(.push, tag: 1, serial: 1, moreFollows: true, body: [1]))
      let goaway = try await client.waitForFrame(.goaway).goAwayFields
      let time = begin.duration(to: simulation.now)
      #expect(goaway?.code == .deadlinePassed)
      #expect(time >= limit && time < limit * 1.5)
      try await client.waitForEnd()
    }
  }
}
