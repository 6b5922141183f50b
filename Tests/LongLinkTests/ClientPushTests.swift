// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What a server sends to clients that move, and to clients on other loops.
@Suite struct ClientPushTests {
  @Test(arguments: [1, 3])
  func `concurrent broadcasts reach each client once, on any loops, while clients move`(loops: Int)
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let told = ToldClients()
      let server = try await stage.serve(
        on: (0..<loops).map { simulation.eventLoop(named: "server \($0)") }, setUp: told.setUp)
      let clients = try (0..<12).map { _ in try stage.client(of: server) }
      let heard = (0..<12).map { _ in Tally<[UInt8]>() }
      var streams: [Task<Void, any Error>] = []
      for (client, tally) in zip(clients, heard) {
        client.onPush(7) { tally.add($0.body) }
        streams.append(client.watch(in: stage))
      }
      try await stage.until { await server.counters().clients == 12 }
      let sent = Mutex(0)
      let senders = (0..<4).map { sender in
        stage.spawn {
          for number in 0..<50 {
            let report = try await server.broadcast(7, [UInt8(sender), UInt8(number)])
            sent.withLock { $0 += report.queued }
            try await stage.clientLoop.sleep(for: .milliseconds(40))
          }
        }
      }
      for _ in 0..<4 {
        for (index, client) in clients.enumerated() {
          client.pathChanged(network: "\(index)")
          try await stage.clientLoop.sleep(for: .milliseconds(37))
        }
      }
      for sender in senders { try await sender.value }
      try await stage.clientLoop.sleep(for: .seconds(1))
      let all = Set((0..<4).flatMap { sender in (0..<50).map { [UInt8(sender), UInt8($0)] } })
      for tally in heard {
        #expect(tally.elements.count == 200, "doubled, or lost")
        #expect(Set(tally.elements) == all)
      }
      #expect(sent.withLock { $0 } == 2_400)
      #expect(told.events.elements.count { $0.hasPrefix("client") } == 12)
      for stream in streams { stream.cancel() }
    }
  }

  @Test func `broadcasts of a loop's own handlers and of other threads come in one order`()
    async throws
  {
    try await Stage.run(.loopback) { stage in
      let told = ToldClients()
      let server = try await stage.serve(setUp: told.setUp)
      let client = try stage.client(of: server)
      let heard = Tally<[UInt8]>()
      client.onPush(7) { heard.add($0.body) }
      _ = try await client.request(.echo, [])
      let senders = [nil, stage.serverLoop].map { loop in
        Task(executorPreference: loop) {
          for _ in 0..<500 {
            let report = try await server.broadcast(7, [])
            #expect(report.queued == 1)
          }
        }
      }
      for sender in senders { try await sender.value }
      await heard.reached(1_000)
    }
  }

  @Test func `a push from another loop than the connection's is sent, or told as lost`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let told = ToldClients()
      let loops = (0..<2).map { simulation.eventLoop(named: "server \($0)") }
      let server = try await stage.serve(on: loops, setUp: told.setUp) {
        $0.limits.waterMarks = WaterMarks(high: 100_000, low: 50_000)
      }
      let client = try stage.client(of: server)
      let pushes = Tally<Int>()
      client.onPush(7) { pushes.add($0.body.count) }
      let stream = client.watch(in: stage)
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      client.pathChanged(network: "other")
      try await stage.until { await server.peers().first?.connectionID == 2 }
      let next = await server.peers()[0]
      #expect(next.loop !== peer.loop, "the connections are on one loop")
      // On its own loop, on the loop of the current connection, and on neither.
      for loop in [peer.loop, next.loop, stage.clientLoop] {
        try await loop.run {
          Result { () throws(LongLinkError) in try peer.pushNow(7, [1]) }
        }.get()
      }
      await pushes.reached(3)
      // What is handed over is bounded.
      let sent = await peer.loop.run {
        (0..<100).count { _ in
          (try? peer.pushNow(7, [UInt8](repeating: 0, count: 10_000))) != nil
        }
      }
      #expect(sent == 9)
      await pushes.reached(12)
      #expect(await server.counters().pushesLost == 0)
      // What cannot be sent is counted, and told by the next call.
      await peer.loop.run { try? peer.pushNow(7, [UInt8](repeating: 0, count: 20_000_000)) }
      try await stage.until { await server.counters().pushesLost == 1 }
      let error = try await failure {
        try await peer.loop.run {
          Result { () throws(LongLinkError) in try peer.pushNow(7, [2]) }
        }.get()
      }
      #expect(error.code == .tooLarge, "\(error)")
      stream.cancel()
    }
  }
}
