// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkCalls
import LongLinkTesting
import Testing

@testable import Chat

/// The client against a scripted server.
@Suite struct RoomTests {
  private func run(
    _ body: @escaping @Sendable (SimulatedChatServer, Guest, Simulation) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedChatServer.start(on: simulation.mainLoop)
      server.onJoin { _ in JoinReply(last: 5, names: ["ann"]) }
      let guest = try Guest("ann", at: server.endpoint, on: simulation.mainLoop) {
        simulation.random()
      }
      let stay = simulation.spawn { await guest.stay() }
      try await guest.until(\.hasEntered)
      try await body(server, guest, simulation)
      await guest.client.close()
      try await stay.value
      await server.stop()
      #expect(simulation.escapes == [] && simulation.pendingTimers == [])
    }
  }

  private func message(_ number: UInt64) -> Message {
    Message(room: "lobby", number: number, author: "bob", text: "\(number)", id: [UInt8(number)])
  }

  private func push(_ number: UInt64, by server: SimulatedChatServer) throws {
    server.server.push(Message.pushType, try message(number).encodedBytes())
  }

  @Test func `a pushed message is shown once, and missing messages are fetched`() async throws {
    try await run { server, guest, _ in
      server.onHistory { request in
        HistoryReply(messages: (request.after + 1...9).map { self.message($0) })
      }
      for number: UInt64 in [5, 6, 6, 9, 8, 10] { try push(number, by: server) }
      try await guest.until { $0.messages.count >= 5 }
      #expect(guest.messages.map(\.number) == [6, 7, 8, 9, 10])
      #expect(try server.historyRequests().map(\.after) == [6])
    }
  }

  @Test func `a message is sent with one id until its outcome is known`() async throws {
    try await run { server, guest, _ in
      let said = ServerAction.reply(encoding: SendReply(number: 6))
      server.onSend([.reset, .never, .refuse(.draining), said])
      guest.room.send("hello")
      guest.room.send("world")
      _ = try await server.waitForSend(count: 5)
      let requests = try server.sendRequests()
      #expect(requests.map(\.text) == ["hello", "hello", "hello", "hello", "world"])
      #expect(Set(requests.prefix(4).map(\.id)).count == 1)
      #expect(requests[4].id != requests[0].id)
    }
  }

  @Test func `a rejected message is reported, and the next one is sent`() async throws {
    try await run { server, guest, _ in
      let said = ServerAction.reply(encoding: SendReply(number: 6))
      let tooLong = try #require(ResponseCode(rawValue: ChatError.textTooLong.rawValue))
      server.onSend([.reply(code: tooLong), said])
      guest.room.send("too long")
      guest.room.send("short")
      _ = try await server.waitForSend(count: 2)
      try await guest.until { $0.seen.last == .refused("too long", reason: "That is too long.") }
    }
  }

  @Test func `history comes by pages, the newest first`() async throws {
    try await run { server, guest, _ in
      server.onHistory { request in
        let first = request.before > 20 ? request.before - 20 : 1
        return HistoryReply(messages: (first..<request.before).map { self.message($0) })
      }
      var numbers: [UInt64] = []
      for try await message in guest.room.history(before: 46) { numbers.append(message.number) }
      #expect(numbers == (1...45).reversed())
      #expect(try server.historyRequests().map(\.before) == [46, 26, 6])
    }
  }

  @Test func `presence and typing are shown`() async throws {
    try await run { server, guest, _ in
      let came = Presence(room: "lobby", name: "bob", isHere: true)
      let typing = Typing(room: "lobby", name: "bob")
      let elsewhere = Typing(room: "kitchen", name: "bob")
      server.server.push(Presence.pushType, try came.encodedBytes())
      server.server.push(Typing.pushType, try elsewhere.encodedBytes())
      server.server.push(Typing.pushType, try typing.encodedBytes())
      try await guest.until { $0.seen.last == .typing("bob") }
      #expect(guest.seen.suffix(2) == [.came("bob"), .typing("bob")])
      await guest.room.type()
      try await server.server.waitForPush(of: Typing.pushType)
    }
  }
}
