// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Testing

/// Responses in several fragments, which come before the requester has ended its items.
@Suite struct StreamEarlyResponseTests {
  private static let body = [UInt8](repeating: 7, count: 200_000)

  /// Responds to the first item, with much time between the parts of the response.
  private static let answer: ServerAction = {
    var steps: [ServerAction] = [ServerAction.wait { !$0.items.isEmpty }]
    for index in 0..<4 {
      steps.append(
        ServerAction.frame { message in
          WireFrame.response(to: message.serial, body).fragments(of: 50_000)[index]
        })
      steps.append(ServerAction.pause(.seconds(10)))
    }
    return ServerAction.sequence(steps)
  }()

  /// Runs a scripted server with a client, in virtual time.
  private func withClient(
    _ body:
      @escaping @Sendable (Simulation, SimulatedServer, LongLinkClient) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 6)
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration, on: simulation.mainLoop)
      try await body(simulation, server, client)
      await client.close()
      await server.stop()
    }
  }

  /// What the requester does while the response arrives.
  enum Use: CaseIterable {
    case writeOnce
    case writeSeveral
    /// An item for which there is no credit.
    case waitForCredit
    case read
    case readLate
    case returnEarly
  }

  @Test(arguments: Use.allCases, [false, true])
  func `a large early response arrives, whatever its requester does meanwhile`(
    use: Use, isElsewhere: Bool
  ) async throws {
    try await withClient { simulation, server, client in
      server.on(6, Self.answer)
      let loop = isElsewhere ? simulation.eventLoop(named: "elsewhere") : client.loop
      let options = StreamOptions(itemTimeout: .seconds(4))
      let response = try await Task(executorPreference: loop) {
        try await client.exchange(6, [], options: options) { items, writer in
          try await writer.write([1])
          if use == .waitForCredit {
            try await writer.write([UInt8](repeating: 2, count: 200_000))
          }
          if use == .read { for try await _ in items {} }
          try await simulation.sleep(for: .seconds(5))
          if use == .writeOnce { try await writer.write([2]) }
          if use == .writeSeveral { try await writer.write(contentsOf: [[2], [3]]) }
          if use == .readLate { for try await _ in items {} }
          let isQuiet = use == .read || use == .readLate || use == .returnEarly
          #expect(isQuiet, "it should have thrown")
        }
      }.value
      #expect(response == Self.body)
      #expect(server.cancels == [])
      #expect(await client.counters().requests.succeeded == 1)
    }
  }

  @Test func `a wait for the rest of a response can be cancelled`() async throws {
    try await withClient { simulation, server, client in
      server.on(6, Self.answer)
      let task = simulation.spawn {
        try await client.sendItems(6, []) { writer in
          try await writer.write([1])
          try await simulation.sleep(for: .seconds(5))
          try await writer.write([2])
        }
      }
      try await simulation.sleep(for: .seconds(15))
      task.cancel()
      let error = try await failure { try await task.value }
      #expect(error.code == .cancelled)
    }
  }

  @Test(arguments: [false, true])
  func `after a refusal in fragments, items have their time again`(isWriting: Bool) async throws {
    try await withClient { simulation, server, client in
      let options = StreamOptions(timeout: .seconds(1_000), itemTimeout: .seconds(4))
      let body = [UInt8](repeating: 7, count: 100)
      server.on(
        6,
        .sequence(
          (0..<2).map { index in
            .sequence([
              .frame {
                WireFrame.response(
                  to: $0.serial, code: .draining, isRefused: true, body,
                  metadata: WireMetadata(retryAfter: .seconds(100))
                ).fragments(of: 60)[index]
              }, .pause(.seconds(2)),
            ])
          }))
      let start = simulation.mainLoop.clock.now
      let error = try await failure {
        try await client.exchange(6, [], options: options) { items, writer in
          if isWriting {
            try await simulation.sleep(for: .seconds(1))
            try await writer.write([1])
          } else {
            for try await _ in items {}
          }
        }
      }
      let time = start.duration(to: simulation.mainLoop.clock.now)
      #expect(error.code == .deadlineExceeded && error.delivery == .refused, "\(error)")
      #expect(time > .seconds(4) && time < .seconds(8), "\(time)")
    }
  }
}
