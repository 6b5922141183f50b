// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Who is evicted where many hold little without an end, and one moves much.
@Suite struct StalledMemoryTests {
  /// The size of the attack, of its requests and of the memory is a sixteenth of the defaults'.
  private static let limit = 67_108_864 / 16
  private static let body = 16_777_216 / 16

  /// A client that has sent most of a request, and sends no more of it.
  private static func stall(
    _ stage: Stage, _ server: LongLinkServer, on loop: EventLoop
  ) async throws -> SimulatedClient {
    let client = try await SimulatedClient.connect(to: server.addresses[0], on: loop)
    _ = try await client.sayHello()
    let request = WireFrame.request(.echo, serial: 50, [UInt8](repeating: 7, count: 8_192))
    client.send(request.fragments(of: 6_250)[0])
    return client
  }

  @Test func `many small requests that never end do not evict large ones that move`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(
        configure: {
          $0.limits.maxBody = Self.body
          $0.limits.maxRequestBytes = 2 * Self.body
          $0.limits.memoryLimit = Self.limit
          $0.addresses.maxConnectionRate = 10_000
        })
      let other = simulation.eventLoop(named: "attacker")
      var stalled: [SimulatedClient] = []
      for _ in 0..<480 { stalled.append(try await Self.stall(stage, server, on: other)) }
      let honest = try stage.client(of: server)
      let body = [UInt8](repeating: 1, count: Self.body / 2)
      for _ in 0..<20 {
        // An attacker whose connection was ended comes back.
        for index in stalled.indices where !stalled[index].record.endings.isEmpty {
          stalled[index].close()
          stalled[index] = try await Self.stall(stage, server, on: other)
        }
        let options = RequestOptions(retry: .never)
        #expect(try await honest.request(.echo, body, options: options).count == body.count)
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      let counters = await server.counters()
      #expect(counters.endings["memoryLimit"] ?? 0 > 0)
      for client in stalled { client.close() }
    }
  }
}
