// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Asynchronous handlers that share the tasks of their loop.
struct HandlerQueueTests {
  private static func currentTask() -> Int {
    unsafe withUnsafeCurrentTask { unsafe $0.map { unsafe $0.hashValue } ?? 0 }
  }

  private static func connect(
    _ stage: Stage, _ server: LongLinkServer
  ) async throws -> SimulatedClient {
    let client = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
    try await client.sayHello()
    return client
  }

  @Test func `handlers that do not wait share tasks, and run in the order of arrival`() async throws
  {
    try await Stage.simulate { stage, _ in
      let ran = Tally<(serial: UInt32, task: Int)>()
      let server = try await stage.serve { server in
        server.route(10) { request async in
          ran.add((request.serial, Self.currentTask()))
          return request.body
        }
      }
      let client = try await Self.connect(stage, server)
      client.send((50..<90).map { .request(10, serial: $0) })
      _ = try await client.waitForResponse(to: 89)
      #expect(ran.elements.map(\.serial) == Array(50..<90))
      #expect(Set(ran.elements.map(\.task)).count <= 5)
    }
  }

  @Test func `handlers that wait run side by side, each in a task of its own`() async throws {
    try await Stage.simulate { stage, _ in
      let (began, gate) = (Tally<Int>(), Latch())
      let server = try await stage.serve { server in
        server.route(10) { request async in
          began.add(Self.currentTask())
          await gate.wait()
          return request.body
        }
      }
      let client = try await Self.connect(stage, server)
      client.send((50..<90).map { .request(10, serial: $0) })
      await began.reached(40)
      #expect(Set(began.elements).count == 40)
      gate.open()
      _ = try await client.waitForResponse(to: 89)
    }
  }

  @Test func `the cancel of one handler reaches no other that could share its task`() async throws {
    try await Stage.simulate { stage, _ in
      let began = Tally<UInt32>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(10) { request async throws in
          began.add(request.serial)
          if request.body.isEmpty { return [] }
          // Returns once it is cancelled.
          try? await request.clock.sleep(for: .seconds(1_000))
          return []
        }
      }
      let client = try await Self.connect(stage, server)
      client.send([.request(10, serial: 50, [1])])
      await began.reached(1)
      // Has a task of its own, since the one before was suspended.
      client.send([.request(10, serial: 51)])
      _ = try await client.waitForResponse(to: 51)
      client.send([.cancel(50), .request(10, serial: 52), .request(10, serial: 53)])
      for serial: UInt32 in [52, 53] {
        #expect(try await client.waitForResponse(to: serial).code == .ok)
      }
      #expect(began.elements == [50, 51, 52, 53])
    }
  }

  @Test func `a handler that goes on does not begin others before their turn`() async throws {
    try await Stage.simulate { stage, _ in
      let (began, gate) = (Tally<UInt32>(), Latch())
      let server = try await stage.serve { server in
        server.route(10) { request async in
          began.add(request.serial)
          if !request.body.isEmpty { await gate.wait() }
          return []
        }
        server.route(11) { request in
          gate.open()
          return []
        }
      }
      let client = try await Self.connect(stage, server)
      client.send([.request(10, serial: 50, [1])])
      await began.reached(1)
      client.send([
        .request(11, serial: 60), .request(10, serial: 51), .request(10, serial: 52),
        .request(10, serial: 53),
      ])
      for serial: UInt32 in [50, 51, 52, 53] {
        #expect(try await client.waitForResponse(to: serial).code == .ok)
      }
      #expect(began.elements == [50, 51, 52, 53])
    }
  }
}
