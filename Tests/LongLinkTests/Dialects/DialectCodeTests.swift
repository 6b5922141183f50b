// SPDX-License-Identifier: Apache-2.0

import LongLinkDialects
import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// What the codes, serials and cancels of a dialect come to.
@Suite struct DialectCodeTests {
  @Test(arguments: [Spoken.guarded, .bare])
  func `each documented code is reported with its number, name and meaning`(
    _ spoken: Spoken
  ) async throws {
    try await Stage.simulate { stage, _ in
      let description = try spoken.description()
      let (server, client) = try await stage.scripted(spoken)
      let errors = try #require(description.codes).errors
      #expect(
        errors.map(\.code) == [
          100, 101, 102, 103, 104, 105, 106, 300, 301, 302, 303, 401, 402, 403, 404, 405, 455, 456,
        ])
      for entry in errors {
        server.on(spoken.echo, .reply(dialectCode: entry.code, body: [1, 2]))
        let error = try await failure { try await client.request(spoken.echo, [1]) }
        #expect(error.code == .rejected && error.delivery == .answered)
        #expect(error.dialectCode == entry.code)
        #expect(error.response == entry.native ?? ResponseCode(rawValue: entry.code))
        #expect(error.detail == "\(entry.code) \(entry.name): \(entry.text)")
        #expect(error.body == [1, 2])
      }
      server.on(spoken.echo, .reply(dialectCode: 404, body: Array("who?\n".utf8)))
      let told = try await failure { try await client.request(spoken.echo, [1]) }
      #expect(told.detail.hasSuffix(#"; the peer says: who?\n"#), "\(told)")
      server.on(spoken.echo, .reply(dialectCode: 7_777))
      let unlisted = try await failure { try await client.request(spoken.echo, [1]) }
      #expect(unlisted.code == .rejected && unlisted.dialectCode == 7_777)
      #expect(unlisted.detail == "7777" && unlisted.response == 7_777)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server's own failures have the dialect's codes`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (_, client) = try await stage.pair(.guarded) { server in
        server.route(0x500) { request -> [UInt8] in
          switch request.body[0] {
          case 0: throw Rejection(.malformed, body: [5])
          case 1: throw Rejection(dialectCode: 403, body: [6])
          case 2: throw CancellationError()
          case 3: throw Rejection(456, body: [])
          default: throw Rejection(dialectCode: 12_345)
          }
        }
      }
      func rejected(_ type: MessageType, _ body: UInt8) async throws -> LongLinkError {
        try await failure { try await client.request(type, [body]) }
      }
      let unknown = try await rejected(0x501, 0)
      #expect(unknown.dialectCode == 401 && unknown.response == .unknownType)
      #expect(unknown.detail == "401 unknownType: nobody handles this type")
      // Nothing proves that no handler ran, and no words of the library's are added.
      #expect(unknown.delivery == .answered && unknown.body == [])
      let malformed = try await rejected(0x500, 0)
      #expect(malformed.dialectCode == 402 && malformed.body == [5])
      let own = try await rejected(0x500, 1)
      #expect(own.dialectCode == 403 && own.body == [6])
      #expect(try await rejected(0x500, 2).dialectCode == 103)
      #expect(try await rejected(0x500, 3).dialectCode == 456)
      #expect(try await rejected(0x500, 4).dialectCode == 12_345)
    }
  }

  @Test func `a failure without a code is counted`() async throws {
    try await Stage.simulate { stage, _ in
      // The client's shape has no code.
      let (server, client) = try await stage.pair(.small) { server in
        server.route(0x500) { request in
          try await request.peer.request(
            0x600, [1], options: RequestOptions(timeout: .seconds(1)))
        }
      }
      let error = try await failure { try await client.request(0x500, [1]) }
      #expect(error.code == .rejected)
      #expect(await client.counters().connections.droppedResponses == 1)
      #expect(await server.counters().requests.expired == 1)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `an unexpected response is treated by the dialect's rule`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      // A heartbeat, which is answered.
      let (guarded, one) = try await stage.scripted(.guarded)
      guarded.on(0x500, [.wrongSerial([8]), .reply([9])])
      let lost = one.submit(0x500, [1])
      #expect(try await one.request(0x500, [2]) == [9])
      let serial = guarded.requests[0].serial + 1_000_000
      try await guarded.wait { $0.frames(of: .pong).contains { $0.serial == serial } }
      lost.cancel()
      await guarded.stop()

      // Dropped and counted.
      let (bare, two) = try await stage.scripted(.bare)
      bare.on(0x500, [.wrongSerial([8]), .sequence([.reply([9]), .reply([9])])])
      let late = two.submit(0x500, [1])
      #expect(try await two.request(0x500, [2]) == [9])
      try await stage.until {
        await two.counters().connections.droppedUnknownSerials == 2
      }
      late.cancel()
      #expect(bare.connectionsAccepted == 1)
      await bare.stop()

      // The end.
      let (small, three) = try await stage.scripted(.small)
      small.on(0x500, .wrongSerial([8]))
      let error = try await failure { try await three.request(0x500, [1]) }
      #expect(error.code == .protocolViolation && error.delivery == .sent)
      await small.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a response to an abandoned request is only late`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(.small)
      server.on(0x500, .hold(untilThereAre: 100, .reply([1])))
      server.on(0x501) { .reply($0.body) }
      let task = client.submit(
        0x500, [1], options: RequestOptions(cancelsAtPeer: true))
      try await server.waitForRequest(of: 0x500)
      task.cancel()
      _ = try await failure { try await task.value }
      try await server.wait { $0.frames(of: .cancel).count == 1 }
      server.releaseHeld()
      #expect(try await client.request(0x501, [2]) == [2])
      let counters = await client.counters()
      #expect(counters.requests.lateReplies == 1)
      #expect(counters.connects == 1)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases, [Spoken.small, .lines])
  func `a cancel stops the handler of one request`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let began = Tally<UInt8>()
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.hang) { request in
          began.add(request.body[0])
          try await request.clock.sleep(for: .seconds(1_000_000))
          return request.body
        }
      }
      let options = RequestOptions(cancelsAtPeer: true)
      let tasks = [1, 2].map { client.submit(spoken.hang, [$0], options: options) }
      await began.reached(2)
      tasks[0].cancel()
      let error = try await failure { try await tasks[0].value }
      #expect(error.code == .cancelled && error.delivery == .sent)
      try await stage.until {
        await server.counters().connections.handlersCancelled == 1
      }
      #expect(await server.counters().requestsRunning == 1)
      tasks[1].cancel()
      try await stage.until { await server.counters().requestsRunning == 0 }
      #expect(await client.counters().connections.cancelsSent == 2)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a cancel by type waits until no other request of that type is wanted`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let began = Tally<UInt8>()
      let (server, client) = try await stage.pair(.guarded) { server in
        for type in [0x500, 0x501] as [MessageType] {
          server.route(type) { request in
            began.add(request.body[0])
            try await request.clock.sleep(for: .seconds(1_000_000))
            return request.body
          }
        }
      }
      let options = RequestOptions(cancelsAtPeer: true)
      let tasks = [1, 2].map { client.submit(0x500, [$0], options: options) }
      let other = client.submit(0x501, [3], options: options)
      await began.reached(3)
      tasks[0].cancel()
      _ = try await failure { try await tasks[0].value }
      #expect(await client.counters().connections.cancelsSent == 0)
      tasks[1].cancel()
      _ = try await failure { try await tasks[1].value }
      #expect(await client.counters().connections.cancelsSent == 1)
      // It meant both.
      try await stage.until {
        await server.counters().connections.handlersCancelled == 2
      }
      #expect(await server.counters().requestsRunning == 1)
      #expect(await server.counters().connections.cancelsReceived == 1)
      other.cancel()
    }
  }

  @Test func `without a frame for it a cancel is not sent`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await stage.scripted(.bare)
      server.on(0x500, .never)
      let task = client.submit(0x500, [1], options: RequestOptions(cancelsAtPeer: true))
      try await server.waitForRequest(of: 0x500)
      task.cancel()
      let error = try await failure { try await task.value }
      #expect(error.delivery == .sent)
      try await simulation.sleep(for: .seconds(1))
      #expect(server.cancels == [])
      #expect(await client.counters().connections.cancelsSent == 0)
      await server.stop()
    }
  }
}
