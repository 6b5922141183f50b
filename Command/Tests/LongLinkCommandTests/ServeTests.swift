// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

/// What `longlink serve` does around its requests.
@Suite(.timeLimit(.minutes(15))) struct ServeTests {
  @Test(arguments: [SIGTERM, SIGINT])
  func `a signal lets running requests finish, and ends with 0`(_ signal: Int32) async throws {
    let server = try await RunningServer()
    let call = try await server.startSleep(milliseconds: 3_000)
    server.tool.send(signal)
    #expect(await call.finish().code == 0)
    #expect(await server.tool.finish().code == 0)
  }

  @Test func `a second signal ends it at once`() async throws {
    let server = try await RunningServer()
    let call = try await server.startSleep(milliseconds: 60_000)
    server.tool.send(SIGTERM)
    // It has heard the first one when nobody gets in any more.
    while try await server.call("1").code == 0 { try Task.checkCancellation() }
    server.tool.send(SIGTERM)
    #expect(await server.tool.finish().code == nil)
    #expect(await call.finish().code == 7)
  }

  @Test func `a port that is in use is reported`() async throws {
    let server = try await RunningServer()
    let second = try await Tool.run("serve", "--port", server.port)
    #expect(second.code == 1)
    #expect(second.output.isEmpty)
    #expect(second.errors.contains("Address already in use"))
  }

  @Test func `stats count the whole process over several loops`() async throws {
    let server = try await RunningServer("--loops", "3")
    let first = try await server.startSleep(milliseconds: 60_000)
    let second = try await server.startSleep(milliseconds: 60_000)
    let during = try await server.stats()
    #expect(during.requestsRunning == 3)
    #expect(during.connections == 3)
    #expect(during.requestsCancelled == 0)
    first.send(SIGKILL)
    second.send(SIGKILL)
    while try await server.stats().requestsCancelled != 2 { try Task.checkCancellation() }
    let after = try await server.stats()
    #expect(after.requestsRunning == 1)
    #expect(after.responsesSent + 3 == after.requestsReceived)
    #expect(after.protocolViolations == 0)
  }

  @Test func `a body over the limit is not accepted`() async throws {
    let server = try await RunningServer("--max-body", "100")
    let body = [UInt8](repeating: 7, count: 101)
    let call = try await server.call("1", "-", input: body)
    #expect(call.code == 5)
    #expect(call.errors.contains("tooLarge"))
    #expect(try await server.call("1", "--text", "small").text == "small")
  }

  @Test func `a broken rule is counted and affects no other client`() async throws {
    let server = try await RunningServer()
    let call = try await server.startSleep(milliseconds: 2_000)
    try RawClient(port: server.port).sendAndRead(Array("GET / HTTP/1.1\r\n\r\n".utf8))
    #expect(try await server.stats().protocolViolations == 1)
    #expect(await call.finish().code == 0)
  }

  @Test func `SIGINT prints the summary of the pings so far`() async throws {
    let server = try await RunningServer()
    let ping = try Tool(["ping", "--port", server.port, "--count", "3600"])
    // The first of them; the second would come a second later.
    #expect(await ping.send(SIGINT, atLineWith: "pong 1 ") != nil)
    let finished = await ping.finish()
    #expect(finished.code == 130)
    #expect(finished.lines.last?.hasPrefix("min/median/p99/max: ") == true, "\(finished.text)")
    #expect(finished.errors.isEmpty)
  }

  @Test func `a Unix socket is named in one way everywhere`() async throws {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-\(UInt64.random(in: 0 ... .max))").path
    let server = try Tool(["serve", "--unix", path])
    #expect(await server.nextLine() == "listening on unix:\(path)")
    #expect(try await Tool.run("call", "1", "--unix", path, "--text", "hi").text == "hi")
    let ping = try await Tool.run("ping", "--unix", path, "--count", "1")
    #expect(ping.lines.first?.hasPrefix("pong 1 from unix:\(path): ") == true)
    let bench = try await Tool.run("bench", "--unix", path, "--duration", "0.1")
    #expect(bench.code == 0)
    let second = try await Tool.run("serve", "--unix", path)
    #expect(second.code == 1)
    #expect(
      second.errors
        == "longlink: listen on unix:\(path): Address already in use (EADDRINUSE)\n")
    server.send(SIGTERM)
    #expect(await server.finish().code == 0)
    let call = try await Tool.run("call", "1", "--unix", path)
    #expect(call.code == 3)
    #expect(
      call.errors == "longlink: connect to unix:\(path): No such file or directory (ENOENT)\n")
  }

  @Test func `ping prints each time and their summary`() async throws {
    let server = try await RunningServer()
    let ping = try await Tool.run(
      "ping", "--port", server.port, "--count", "4", "--interval", "0.01")
    #expect(ping.code == 0)
    #expect(ping.lines.count == 5)
    for line in ping.lines.prefix(4) { #expect(line.hasSuffix(" ms")) }
    #expect(ping.lines.last?.hasPrefix("min/median/p99/max: ") == true)
    let times = ping.lines.last?.dropFirst(20).split(separator: " / ")
      .compactMap { Double($0.dropLast(3)) }
    #expect(times?.count == 4)
    #expect(times == times?.sorted())
  }
}
