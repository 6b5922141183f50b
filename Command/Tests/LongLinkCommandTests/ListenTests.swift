// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

@testable import LongLinkCommand

/// What `longlink listen` prints, and how it ends.
@Suite(.timeLimit(.minutes(15))) struct ListenTests {
  /// Starts to listen to a server, and waits until it knows so many clients besides.
  private static func listen(
    _ server: RunningServer, clients: UInt32 = 1, _ arguments: String...
  ) async throws -> Tool {
    let tool = try Tool(["listen", "--port", server.port] + arguments)
    // Each look is a client, too.
    while try await server.peers().clients != clients + 1 { try Task.checkCancellation() }
    return tool
  }

  @Test func `each push is a line, with escapes for what could control a terminal`() async throws {
    let server = try await RunningServer()
    let tool = try await Self.listen(server, "--count", "4")
    try await server.broadcast(7, Array("one é".utf8))
    try await server.broadcast(8, Array("two\r\n\u{1B}[2J\u{202E}\\".utf8))
    try await server.broadcast(9, [])
    try await server.broadcast(9, [0xFF, 0x9B, 0])
    let end = await tool.finish()
    #expect(
      end.text == #"""
        one é
        two\r\n\u{1B}[2J\u{202E}\\

        \xFF\x9B\0

        """#)
    #expect(end.code == 0 && end.errors.isEmpty, "\(end.errors)")
  }

  @Test func `JSON has one object for each push, of one type if that is asked for`() async throws {
    let server = try await RunningServer()
    let tool = try await Self.listen(server, "--type", "9", "--count", "2", "--json")
    for (type, body) in [(9, "a/\n"), (8, "no"), (9, "")] as [(UInt32, String)] {
      try await server.broadcast(type, Array(body.utf8))
    }
    let end = await tool.finish()
    #expect(end.text == #"{"body":"YS8K","type":9}"# + "\n" + #"{"body":"","type":9}"# + "\n")
    #expect(end.code == 0)
  }

  @Test func `a timeout ends with 4 before there are enough, and else with 0`() async throws {
    let server = try await RunningServer()
    // On a slow machine, the push may not have come before the timeout has passed.
    for timeout in ["15", "60", "240"] {
      let tool = try await Self.listen(server, "--count", "2", "--timeout", timeout)
      try await server.broadcast(7, Array("one".utf8))
      let few = await tool.finish()
      if few.text.isEmpty, few.code == 4, timeout != "240" { continue }
      #expect(few.code == 4 && few.text == "one\n" && few.errors.isEmpty, "\(few.errors)")
      break
    }
    let any = try await Tool.run("listen", "--port", server.port, "--timeout", "0.5")
    #expect(any.code == 0 && any.output.isEmpty && any.errors.isEmpty, "\(any.errors)")
    let silent = try ScriptedPeer { $0.readToEnd() }
    let late = try await Tool.run("listen", "--port", silent.port, "--timeout", "0.25")
    #expect(late.code == 4 && late.errors.contains("deadlineExceeded"), "\(late.errors)")
  }

  @Test func `it connects again after a loss, and says so`() async throws {
    let server = try await RunningServer()
    let tool = try await Self.listen(server, "--count", "2")
    try await server.broadcast(7, Array("before".utf8))
    #expect(await tool.nextLine() == "before")
    server.tool.send(SIGKILL)
    let lost = await tool.nextErrorLine()
    #expect(lost == "longlink: the connection was lost; the client is connecting again")
    let next = try await RunningServer(["--port", server.port])
    #expect(await tool.nextErrorLine() == "longlink: connected again")
    try await next.broadcast(7, Array("after".utf8))
    let end = await tool.finish()
    #expect(end.text == "after\n" && end.code == 0 && end.errors.isEmpty, "\(end.errors)")
  }

  @Test func `no server ends with 3, and a wrong token with 9`() async throws {
    let server = try await RunningServer("--token", "ann=first")
    let wrong = try await Tool.run("listen", "--port", server.port, "--token", "second")
    #expect(wrong.code == 9 && wrong.errors.contains("401"), "\(wrong.errors)")
    server.tool.send(SIGKILL)
    _ = await server.tool.finish()
    #expect(try await Tool.run("listen", "--port", server.port).code == 3)
  }

  @Test func `dropped pushes are reported in few lines`() {
    var reported: UInt64 = 0
    let lines = (0...1_000).compactMap { ListenCommand.report(of: $0, after: &reported) }
    #expect(lines.count == 10)
    #expect(lines.last == "standard output is too slow: 512 pushes were dropped")
  }

  @Test(arguments: [
    ["x"], ["--type", "16777216"], ["--type", "-1"], ["--count", "0"], ["--timeout", "0"],
    ["--timeout", "x"], ["--port", "0"], ["--raw"], ["--identity", "/no/such/folder/file"],
    ["--identity", "/dev/null"], ["--http", "http://127.0.0.1:1/longlink/v1"],
  ])
  func `wrong arguments end with 64 and say why`(_ arguments: [String]) async throws {
    let tool = try await Tool(["listen"] + arguments).finish()
    #expect(tool.code == 64, "\(tool.errors)")
    #expect(tool.output.isEmpty && !tool.errors.isEmpty)
  }

  // MARK: - Identity

  private static var path: String {
    FileManager.default.temporaryDirectory.appending(component: "longlink-\(UUID())").path
  }

  @Test func `calls with one identity are one client`() async throws {
    let server = try await RunningServer()
    let file = Self.path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let first = try await Self.listen(server, "--identity", file, "--count", "1")
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try await server.peers("--identity", file) == PeersReply(clients: 1, connections: 2))
    let request = try CountRequest(count: 2, intervalMilliseconds: 86_400_000).hex
    let stream = try Tool([
      "stream", "6", "--hex", request, "--port", server.port, "--identity", file,
    ])
    #expect(await stream.nextLine() != nil)
    while try await server.peers() != PeersReply(clients: 2, connections: 3) {
      try Task.checkCancellation()
    }
    // It has the newer connection, and gets what is pushed.
    stream.send(SIGTERM)
    _ = await stream.finish()
    while try await server.peers().connections != 2 { try Task.checkCancellation() }
    try await server.broadcast(7, Array("back".utf8))
    #expect(await first.finish().text == "back\n")
  }

  @Test func `an identity file that cannot be used ends with 64, and names the option`()
    async throws
  {
    let file = Self.path
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    for command in [["call", "1"], ["stream", "6"], ["listen"], ["upload", file]] {
      let wrong = try await Tool(command + ["--identity", file]).finish()
      #expect(wrong.code == 64, "\(command): \(wrong.errors)")
      #expect(wrong.errors.contains("--identity: ") && wrong.errors.contains("16 bytes"))
    }
    #if HTTP
    let http = ["--http", "http://127.0.0.1:1/longlink/v1"]
    for command in [["call", "1"], ["stream", "6"], ["upload", file]] {
      let wrong = try await Tool(command + http + ["--identity", Self.path]).finish()
      #expect(wrong.code == 64 && wrong.errors.contains("leave out --identity"))
    }
    #endif
  }
}
