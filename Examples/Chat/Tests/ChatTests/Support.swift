// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import Foundation
import LongLinkCalls
import LongLinkTesting
import Synchronization
import Testing

@testable import Chat
@testable import ChatServer

/// A person in a room, and the events that they were shown.
final class Guest: Sendable {
  let client: LongLinkClient
  let room: ChatRoom
  private let events = Mutex<[ChatRoom.Event]>([])

  init(
    _ name: String, at endpoint: Endpoint, on loop: EventLoop = .shared,
    random: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) throws {
    var configuration = ClientConfiguration(
      servers: [endpoint])
    configuration.logger.logLevel = .critical
    configuration.reconnect.afterRefused = .milliseconds(200)
    configuration.reconnect.cap = .seconds(2)
    client = try LongLinkClient(configuration, on: loop)
    room = ChatRoom("lobby", as: name, over: try CallClient(client, .chat), random: random)
  }

  /// Stays until the client is closed.
  func stay() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.room.run() }
      for await event in room.events { events.withLock { $0.append(event) } }
    }
  }

  var seen: [ChatRoom.Event] { events.withLock { $0 } }
  var hasEntered: Bool { seen.contains { if case .entered = $0 { true } else { false } } }
  var messages: [Message] {
    seen.compactMap { if case .said(let message) = $0 { message } else { nil } }
  }
  var texts: [String] { messages.map(\.text) }

  /// Waits until `condition` holds, in the time of the client's loop.
  func until(
    _ condition: (Guest) -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let limit = client.loop.clock.now.advanced(by: .seconds(300))
    while !condition(self) {
      guard client.loop.clock.now < limit else {
        Issue.record("not seen: \(seen)", sourceLocation: sourceLocation)
        throw CancellationError()
      }
      try await client.loop.sleep(for: .milliseconds(20))
    }
  }
}

/// A disk: its messages outlive the process that wrote them.
final class Disk: Sendable {
  let messages = Mutex<[Message]>([])

  /// The disk as one run of a process has it, until the run ends.
  func log(while isAlive: @escaping @Sendable () -> Bool) -> any MessageLog {
    Log(disk: self, isAlive: isAlive)
  }

  private struct Log: MessageLog {
    let disk: Disk
    let isAlive: @Sendable () -> Bool

    func load() -> [Message] { disk.messages.withLock { $0 } }
    func append(_ message: Message) throws {
      guard isAlive() else { throw CancellationError() }
      disk.messages.withLock { $0.append(message) }
    }
  }
}

/// A program of the package, which is built beside its tests.
func program(_ name: String) -> URL {
  let tests = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.bundlePath
  return URL(filePath: tests).deletingLastPathComponent().appending(path: name)
}
