// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import ChatMessages
import LongLinkCalls

/// A room in the terminal.
@main
struct Chat: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Chat", abstract: "Enters a room of a chat server.")

  @Argument(help: "Your name.")
  var name: String

  @Argument(help: "The room.")
  var room = "lobby"

  @Argument(help: "The name or address of the server.")
  var host = "127.0.0.1"

  @Argument(help: "The server's port.")
  var port: UInt16 = 9010

  func run() async throws {
    var configuration = ClientConfiguration(servers: [.host(host, port: port)])
    configuration.logger.logLevel = .critical
    let client = try LongLinkClient(configuration)
    let room = ChatRoom(room, as: name, over: try CallClient(client, .chat))
    let screen = Screen(room)

    await withDiscardingTaskGroup { group in
      group.addTask { await room.run() }
      group.addTask { await screen.show() }
      for await input in Terminal.inputs() {
        switch input {
        case .typing: await room.type()
        case .line("/quit"): await client.close()
        case .line("/back"): await screen.showMore()
        case .line(let text): room.send(text)
        }
      }
      await client.close()
    }
  }
}

/// Prints what happens in a room.
actor Screen {
  private let room: ChatRoom
  private var history: PagedList<Message, UInt64>?

  init(_ room: ChatRoom) {
    self.room = room
  }

  func show() async {
    for await event in room.events {
      switch event {
      case .entered(let names, let last):
        print("* here: \(names.joined(separator: ", "))   (/back: earlier messages, /quit)")
        if history == nil {
          history = room.history(before: last + 1)
          await showMore()
        }
      case .said(let message): print("\(message.author): \(message.text)")
      case .came(let name): print("* \(name) has come")
      case .went(let name): print("* \(name) has gone")
      case .typing(let name): print("* \(name) is typing")
      case .offline: print("* offline; your messages are sent after the reconnect")
      case .refused(let text, let reason): print("* not sent: \(text) (\(reason))")
      }
    }
  }

  /// Prints another page of earlier messages, the oldest first.
  func showMore() async {
    do throws(CallError) {
      guard let page = try await history?.loadMore() else { return }
      for message in page.elements.reversed() { print("  \(message.author): \(message.text)") }
    } catch {
      print("* \(error.text)")
    }
  }
}
