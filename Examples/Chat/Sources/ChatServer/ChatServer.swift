// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkServer

/// Serves the rooms, and stores their messages in a file.
@main
struct ChatServer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ChatServer", abstract: "Serves the rooms of a chat.")

  @Argument(help: "The port to listen on; 0 for a free one.")
  var port: UInt16 = 9010

  @Argument(help: "The file that stores the messages.")
  var file = "chat.log"

  func run() async throws {
    let rooms = try Rooms(FileLog(path: file), on: EventLoop(name: "rooms"))
    let server = try LongLinkServer(listen: .host("127.0.0.1", port: port))
    rooms.register(with: server)
    try await server.run(until: .sigterm, .sigint, within: .seconds(5)) {
      // Unbuffered, because the parent process may wait for this line.
      FileHandle.standardOutput.write(Data("listening on \(server.addresses[0])\n".utf8))
    }
  }
}
