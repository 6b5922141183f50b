// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import Foundation
import LongLinkCalls
import LongLinkServer
import LongLinkTesting
import Testing

@testable import Chat
@testable import ChatServer

/// A server that is killed in the middle of a conversation.
@Suite struct CrashTests {
  private let names = ["ann", "bob", "cat"]

  /// Each guest sends twenty messages, and must see each of all sixty once, in the same order.
  private func converse(
    _ guests: [Guest], pause: (Int) async throws -> Void, trouble: () async throws -> Void
  ) async throws {
    for guest in guests { try await guest.until(\.hasEntered) }
    for number in 1...20 {
      for guest in guests { guest.room.send("\(guest.room.name) \(number)") }
      try await pause(number)
      if number % 4 == 0 { try await trouble() }
    }
    for guest in guests { try await guest.until { $0.messages.count >= names.count * 20 } }
    let order = guests[0].texts
    let all = names.flatMap { name in (1...20).map { "\(name) \($0)" } }
    #expect(order.sorted() == all.sorted())
    for guest in guests {
      #expect(guest.texts == order)
      #expect(guest.messages.map(\.number) == Array(1...60))
      let own = order.filter { $0.hasPrefix(guest.room.name) }
      #expect(own == (1...20).map { "\(guest.room.name) \($0)" })
    }
  }

  @Test(arguments: 0..<20)
  func `no message is lost or duplicated, whatever happens`(_ seed: UInt64) async throws {
    let simulation = Simulation(seed: seed)
    let disk = Disk()
    let endpoint = Endpoint.host("10.0.0.1", port: 9010)
    let process = simulation.process(named: "server") { run in
      var configuration = ServerConfiguration(listen: [endpoint])
      configuration.logger.logLevel = .critical
      let server = try LongLinkServer(configuration, on: [run.loop])
      try Rooms(disk.log { run.isAlive }, on: run.loop).register(with: server)
      run.atEnd { await server.shutDown(within: .zero) }
      try await server.start()
    }
    simulation.network.conditions = .unsteady
    try await simulation.run { [names] in
      try await process.start()
      let guests = try names.map { name in
        let loop = simulation.eventLoop(named: name)
        return try Guest(name, at: endpoint, on: loop) { simulation.random() }
      }
      let stays = guests.map { guest in simulation.spawn { await guest.stay() } }
      try await converse(guests) { _ in
        // Often no longer than a message and its response take.
        let longest: Int64 = simulation.random(in: 0...3) == 0 ? 800 : 60
        try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...longest)))
      } trouble: {
        switch simulation.random(in: 0...3) {
        case 0: process.crash(.process)
        case 1: process.crash(.machine)
        case 2: return simulation.network.links.forEach { $0.reset(.toClient) }
        default: return simulation.network.links.forEach { $0.silence(.toClient) }
        }
        let pause: Int64 = simulation.random(in: 0...20_000)
        try await simulation.sleep(for: .milliseconds(pause))
        try await process.start()
      }
      for guest in guests { await guest.client.close() }
      for stay in stays { try await stay.value }
      process.crash()
    }
  }

  @Test func `no message is lost or duplicated when the server process is killed`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "chat-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = folder.appending(path: "chat.log").path
    var server = try await RunningServer(port: 0, log: log)
    let port = server.port
    let guests = try names.map { try Guest($0, at: .host("127.0.0.1", port: port)) }
    let stays = guests.map { guest in Task { await guest.stay() } }
    try await converse(guests) { number in
      // Some of the messages are still in flight.
      try await guests[0].until { $0.messages.count >= number * 3 - 4 }
    } trouble: {
      server.kill()
      server = try await RunningServer(port: port, log: log)
    }
    for guest in guests { await guest.client.close() }
    for stay in stays { await stay.value }
    server.kill()
  }

  @Test func `a message that a crash has truncated is ignored`() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "chat-\(UUID()).log").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let messages = (1...3).map { number in
      Message(room: "lobby", number: UInt64(number), author: "ann", text: "hello", id: [1])
    }
    let log = try FileLog(path: path)
    #expect(try log.load() == [])
    for message in messages { try log.append(message) }
    let whole = try Data(contentsOf: URL(filePath: path))
    for cut in 1..<whole.count / 3 {
      try whole.dropLast(cut).write(to: URL(filePath: path))
      let log = try FileLog(path: path)
      #expect(try log.load() == Array(messages.prefix(2)))
      try log.append(messages[2])
      #expect(try FileLog(path: path).load() == messages)
    }
  }
}

/// The program `ChatServer` in a separate process.
struct RunningServer {
  let port: UInt16
  private let process = Process()

  /// Starts it, and waits until it listens.
  init(port: UInt16, log: String) async throws {
    let output = Pipe()
    process.executableURL = program("ChatServer")
    process.arguments = ["\(port)", log]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = ""
    // "listening on 127.0.0.1:9010"
    while !line.hasSuffix("\n") {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw CocoaError(.fileReadUnknown) }
      line += String(decoding: data, as: UTF8.self)
    }
    guard let port = UInt16(line.dropLast().split(separator: ":").last ?? "") else {
      throw CocoaError(.fileReadUnknown)
    }
    self.port = port
  }

  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
