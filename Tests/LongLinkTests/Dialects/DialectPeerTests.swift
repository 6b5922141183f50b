// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkServer
import LongLinkTestSupport
import Testing
import LongLinkDialects

/// A client and a server against a peer in another language, written from a dialect's description.
@Suite(.unless(ForeignPeer.problem))
struct DialectPeerTests {
  @Test func `a client talks to a server in another language`() async throws {
    try await Stage.run(.loopback) { stage in
      let peer = try ForeignPeer("serve")
      let line = try #require(await peer.line())
      let port = try #require(UInt16(line))
      let description = try FrameDialect.small()
      let client = try stage.client(to: [.host("127.0.0.1", port: port)]) {
        $0.dialect = .custom(description)
        // The peer counts pings: none comes by itself, however slow the machine is.
        $0.heartbeat = Heartbeat(interval: .seconds(3_600), timeout: .seconds(60))
      }
      client.onRequest(0x600) { request in request.body + Array("!".utf8) }
      for count in [0, 1, 1_000, 4_096] {
        let body = [UInt8](repeating: 0xA5, count: count)
        #expect(try await client.request(0x500, body) == body)
      }
      let busy = try await failure { try await client.request(0x501, [1]) }
      #expect(busy.response == .overloaded && busy.dialectCode == 2)
      let tasks = (0..<3).map { client.submit(0x502, [UInt8($0)]) }
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index)])
      }
      #expect(try await client.request(0x503, Array("who".utf8)) == Array("they say: who!".utf8))
      var pushes = client.pushes(of: 0xF001).makeAsyncIterator()
      #expect(try await client.request(0x504, [4, 5]) == [])
      #expect(await pushes.next()?.body == [4, 5])
      #expect(try await client.ping() > .zero)
      try await client.push(0xF1FF, Array("pushed".utf8))
      let given = client.submit(0x505, [1], options: RequestOptions(cancelsAtPeer: true))
      #expect(try await client.request(0x500, [1]) == [1])
      given.cancel()
      _ = try await failure { try await given.value }
      #expect(
        try await client.request(0x506, [1]) == Array("1 cancelled, 1 pings, pushed".utf8))
      #expect(await client.counters().connects == 1)
      let damaged = try await failure { try await client.request(0x507, [1]) }
      #expect(damaged.code == .corrupted && damaged.delivery == .sent)
      await client.close()
      #expect(await peer.status() == 0)
    }
  }

  @Test func `a server is called from another language`() async throws {
    try await Stage.run(.loopback) { stage in
      let description = try FrameDialect.small()
      let server = try await stage.serve { server in
        server.route(0x500) { request in request.body }
        server.onPush(0xF100) { push, peer in try? peer.pushNow(0xF000, push.body) }
      } configure: {
        $0.dialect = .custom(description)
      }
      let peer = try ForeignPeer("call", "\(try #require(server.addresses.first?.port))")
      #expect(await peer.line() == "all is well")
      #expect(await peer.status() == 0)
      try await stage.until { await server.counters().openConnections == 0 }
      let counters = await server.counters()
      #expect(counters.violations == ["checksumMismatch": 1])
      #expect(counters.connections.requestsReceived == 51)
    }
  }
}

/// A process that speaks the dialect `small` without any code of this package.
private final class ForeignPeer: Sendable {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  /// What chooses the interpreter, and becomes it.
  private static let interpreter = root.appending(path: "Scripts/python.sh")
  private static let script = root.appending(path: "Protocols/Peers/small.py")

  /// Why there can be none here; nil where there can.
  static let problem: String? = {
    let process = Process()
    let errors = Pipe()
    process.executableURL = interpreter
    process.arguments = ["--version"]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = errors
    do {
      try process.run()
      let text = try errors.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      guard process.terminationStatus != 0 else { return nil }
      return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)
    } catch {
      return "\(error)"
    }
  }()

  private let process = Process()
  private let output = Pipe()
  private let ended = Latch()

  init(_ arguments: String...) throws {
    process.executableURL = Self.interpreter
    process.arguments = [Self.script.path] + arguments
    process.standardOutput = output
    process.terminationHandler = { [ended] _ in ended.open() }
    try process.run()
  }

  deinit {
    if process.isRunning { process.terminate() }
  }

  /// The first line that it prints; nil at its end.
  func line() async -> String? {
    let handle = output.fileHandleForReading
    return await withCheckedContinuation { continuation in
      PlainThread.run {
        var line: [UInt8] = []
        while let byte = try? handle.read(upToCount: 1)?.first {
          if byte == UInt8(ascii: "\n") {
            return continuation.resume(returning: String(decoding: line, as: UTF8.self))
          }
          line.append(byte)
        }
        continuation.resume(returning: nil)
      }
    }
  }

  func status() async -> Int32 {
    await ended.wait()
    return process.terminationStatus
  }
}
