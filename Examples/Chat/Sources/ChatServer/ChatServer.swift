import Dispatch
import Foundation
import LongLinkServer

/// chat-server [PORT [FILE]]: serves the rooms, and keeps what is said in a file.
@main
struct ChatServer {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    let port = arguments.first.flatMap { UInt16($0) } ?? 9010
    let file = arguments.dropFirst().first ?? "chat.log"

    let rooms = try Rooms(FileLog(path: file), on: EventLoop(name: "rooms"))
    let server = try LongLinkServer(host: "127.0.0.1", port: port)
    rooms.register(with: server)
    try await server.start()
    // Not held back by a buffer: whoever started it may wait for this.
    FileHandle.standardOutput.write(Data("listening on \(server.addresses[0])\n".utf8))

    signal(SIGTERM, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGTERM)
    source.setEventHandler { @Sendable in Task { await server.shutDown(within: .seconds(5)) } }
    source.resume()
    await server.waitUntilShutDown()
  }
}
