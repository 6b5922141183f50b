// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

/// The exit codes that scripts rely on.
@Suite(.timeLimit(.minutes(15))) struct ExitCodeTests {
  @Test(arguments: [
    ["call"], ["call", "x"], ["call", "-1"], ["call", "16777216"], ["call", ""],
    ["call", "1", "--port", "0"], ["call", "1", "--port", "65536"], ["call", "1", "--port", "-1"],
    ["call", "1", "--port", "http"], ["call", "1", "--host", ""],
    ["call", "1", "--hex", "123"], ["call", "1", "--hex", "zz"], ["call", "1", "--hex", "é"],
    ["call", "1", "--timeout", "0"], ["call", "1", "--timeout", "-1"],
    ["call", "1", "--timeout", "soon"], ["call", "1", "--timeout", "nan"],
    ["call", "1", "--timeout", "1e300"],
    ["call", "1", "--count", "0"], ["call", "1", "--count", "x"],
    ["call", "1", "--in-flight", "0"],
    ["call", "1", "--file", "/no/such/file"], ["call", "1", "--text", "a", "--hex", "00"],
    ["call", "1", "-", "--text", "a"], ["call", "1", "2"], ["call", "1", "--colour"],
    ["ping", "--port", "0"], ["ping", "--count", "0"], ["ping", "--interval", "-1"],
    ["ping", "--count", "101", "--interval", "0"],
    ["serve", "--port", "65536"], ["serve", "--port", "x"], ["serve", "--loops", "0"],
    ["serve", "--heartbeat", "0"], ["serve", "--heartbeat", "0.001"],
    ["serve", "--heartbeat-timeout", "-1"], ["serve", "--max-body", "0"],
    ["serve", "--max-body", "9999999999"], ["serve", "--host", ""], ["serve", "--unix", ""],
    ["serve", "--once"], ["serve", "--once", ""], ["serve", "--once-retention", "5"],
    ["serve", "--once", "memory", "--once-retention", "0"],
    ["serve", "--once", "memory", "--once-retention", "0.0001"],
    ["serve", "--once", "memory", "--once-retention", "9999999"],
    ["serve", "--once-restored"], ["serve", "--once", "memory", "--once-restored"],
    ["call", "1", "--ticket", "/a", "--token", "a"], ["call", "1", "--once", "--ticket", "/a"],
    ["call", "1", "--once", "--ticket", "/a", "--token", "a", "--count", "2"],
    [
      "call", "1", "--once", "--ticket", "/a", "--token", "a", "--http",
      "http://127.0.0.1:1/longlink/v1",
    ],
    ["call", "1", "--once", "--ticket", "/dev/null", "--token", "a"],
    ["call", "1", "--once", "--ticket", "/", "--token", "a"],
    ["serve", "--unix", "/a", "--port", "1"], ["call", "1", "--unix", "/a", "--host", "b"],
    ["ping", "--unix", String(repeating: "a", count: 200)],
    ["dance"],
  ])
  func `wrong arguments end with 64 and say why`(_ arguments: [String]) async throws {
    let tool = try await Tool(arguments).finish()
    #expect(tool.code == 64)
    #expect(tool.output.isEmpty)
    #expect(!tool.errors.isEmpty)
  }

  @Test func `a server that does not listen ends with 3`() async throws {
    let server = try await RunningServer()
    server.tool.send(SIGKILL)
    _ = await server.tool.finish()
    let call = try await server.call("1")
    #expect(call.code == 3)
    #expect(
      call.errors
        == "longlink: connect to 127.0.0.1:\(server.port): Connection refused (ECONNREFUSED)\n")
    #expect(try await Tool.run("ping", "--port", server.port).code == 3)
  }

  @Test func `a deadline ends with 4`() async throws {
    let server = try await RunningServer()
    let request = try SleepRequest(milliseconds: 60_000).hex
    let call = try await server.call("2", "--hex", request, "--timeout", "0.25")
    #expect(call.code == 4)
    #expect(call.errors.contains("deadlineExceeded"))
  }

  @Test func `a deadline covers the connect`() async throws {
    let peer = try ScriptedPeer { $0.readToEnd() }
    let call = try await Tool.run("call", "1", "--port", peer.port, "--timeout", "0.25")
    #expect(call.code == 4)
  }

  @Test func `a rejection ends with 5 and prints code and detail`() async throws {
    let server = try await RunningServer()
    for (code, detail) in [(UInt32(402), "no funds"), (1042, "no tickets")] {
      let request = try FailRequest(code: code, detail: detail).hex
      let call = try await server.call("4", "--hex", request)
      #expect(call.code == 5)
      #expect(call.output.isEmpty)
      #expect(call.errors.contains("\(code)"))
      #expect(call.errors.contains(detail))
    }
    let unknown = try await server.call("99")
    #expect(unknown.code == 5)
    #expect(unknown.errors.contains("404"))
    #expect(unknown.errors.contains("refused"))
  }

  @Test(arguments: [402, 1042] as [UInt32], [[], ["--json"]])
  func `the detail of a rejection stays in its line`(
    _ code: UInt32, _ arguments: [String]
  ) async throws {
    let server = try await RunningServer()
    let detail = "no\nlonglink: all is well\u{1B}[2K\t\u{202E}\u{2066}"
    let request = try FailRequest(code: code, detail: detail).hex
    let tool = try Tool(["call", "4", "--port", server.port, "--hex", request] + arguments)
    let call = await tool.finish()
    #expect(call.code == 5)
    #expect(call.errors.split(separator: "\n").count == 1)
    // With --json the body of an application's own code is in the object alone.
    let isShown = code < 1_000 || arguments.isEmpty
    let safe = #"no\nlonglink: all is well\u{1B}[2K\t\u{202E}\u{2066}"#
    #expect(call.errors.contains(safe) == isShown, "\(call.errors)")
    #expect(!call.errors.dropLast().unicodeScalars.contains { $0.value < 32 || $0.value > 126 })
  }

  @Test(arguments: [402, 1042] as [UInt32], ["x", "\n", "\u{202E}"])
  func `the detail of a rejection is cut`(_ code: UInt32, _ character: String) async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
      let body = Array(String(repeating: character, count: 300_000).utf8)
      connection.write(ScriptedConnection.frame(kind: 1, tag: code, serial: 50, body: body))
      connection.readToEnd()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 5)
    #expect(call.errors.utf8.count < 400 && call.errors.contains("…"), "\(call.errors.prefix(500))")
    #expect(call.errors.split(separator: "\n").count == 1)
  }

  @Test(arguments: [0, 200, 8_388_608] as [UInt32])
  func `a code that no failure can have is answered with 400`(_ code: UInt32) async throws {
    let server = try await RunningServer()
    let call = try await server.call("4", "--hex", try FailRequest(code: code, detail: "").hex)
    #expect(call.code == 5)
    #expect(call.errors.contains("400"))
  }

  @Test(arguments: ["2", "3", "4", "5", "10", "11", "19"])
  func `a body that is no message is answered with 400`(_ type: String) async throws {
    let server = try await RunningServer()
    let call = try await server.call(type, "--hex", "ff")
    #expect(call.code == 5)
    #expect(call.errors.contains("400"))
  }

  @Test func `a damaged answer ends with 6`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
      var answer = ScriptedConnection.frame(kind: 1, tag: 200, serial: 50, body: [1, 2, 3])
      answer[17] ^= 0x10
      connection.write(answer)
      connection.readToEnd()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 6)
    #expect(call.output.isEmpty)
    #expect(call.errors.contains("corrupted"))
  }

  @Test func `a broken rule ends with 6`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
      connection.write(ScriptedConnection.frame(kind: 0x2F, tag: 0, serial: 50))
      connection.readToEnd()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 6)
    #expect(call.errors.contains("protocolViolation"))
  }

  @Test func `a peer that speaks something else ends with 6`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
      connection.readToEnd()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 6)
    #expect(call.errors.contains("serialOutOfRange"))
    #expect(call.errors.contains("this may not be a LongLink server"))
  }

  @Test func `a broken rule after a valid frame is no sign of another protocol`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.write(ScriptedConnection.frame(kind: 0x08, tag: 0, serial: 0))
      connection.write(ScriptedConnection.frame(kind: 0x2F, tag: 0, serial: 50))
      connection.readToEnd()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 6)
    #expect(call.errors.contains("unknownKind"))
    #expect(!call.errors.contains("this may not be"))
  }

  @Test func `a connection that ends before the answer ends with 7`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
    }
    let call = try await Tool.run("call", "1", "--port", peer.port)
    #expect(call.code == 7)
    #expect(call.errors.contains("connectionLost"))
    #expect(call.errors.contains("delivery: sent"))
  }

  @Test func `a server killed during a request ends with 7`() async throws {
    let server = try await RunningServer()
    let call = try await server.startSleep(milliseconds: 60_000)
    server.tool.send(SIGKILL)
    #expect(await call.finish().code == 7)
  }

  @Test func `the first of several failures decides`() async throws {
    let peer = try ScriptedPeer { connection in
      connection.greet()
      connection.read()
      connection.write(ScriptedConnection.frame(kind: 1, tag: 404 | 1 << 23, serial: 50))
      connection.read()
    }
    // The first is refused, the second lost, and there is nobody for the third.
    let call = try await Tool.run("call", "1", "--port", peer.port, "--count", "3")
    #expect(call.code == 5)
  }
}
