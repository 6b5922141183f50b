// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The demo checks itself; here it is checked that it does, and that it tells all of it.
@Suite(.timeLimit(.minutes(15))) struct DemoTests {
  @Test func `every statement of the demo holds, in plain text without a terminal`() async throws {
    let demo = try await Tool.run("demo")
    #expect(demo.code == 0, "\(demo.errors)\n\(demo.text)")
    #expect(!demo.output.contains(0x1B))
    let checks = demo.text.count { $0 == "✓" }
    #expect(demo.text.contains("\n\(checks) checks passed. The command is "), "\(demo.text)")
    // The section that it names is there.
    let section = try #require(demo.text.firstMatch(of: /Now read "(.+)" in README.md.\n$/)).1
    let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in
      url.deletingLastPathComponent()
    }
    let readme = try String(contentsOf: root.appending(component: "README.md"), encoding: .utf8)
    #expect(readme.contains("\n## \(section)\n"))
    for statement in [
      "Echo returned Tick(number: 42) unchanged", "delivery answered", "delivery refused",
      "they were answered in the opposite order", "all arrived, in order",
      "all arrived, in order, and then the response", "Sum counted three items of ours",
      "other requests pass those that wait", "no more than a window of items has come",
      "the reader left: the server's handler has ended", "the error came after 3 items",
      "the number of items before it are known", "cancelled 1 -> 2",
      "deadlineExceeded, delivery sent", "connectionLost, delivery sent",
      "delivery notSent: it did not run", "the request that waited was answered",
      "the reason is the lost heartbeat", "the client reconnected automatically",
      "ended exactly once", "ended with exit code 0",
      "all is encrypted", "TLSv1.3", "it knows why: unknownAuthority",
      "notAccepted, delivery notSent", "new connections get the new certificate",
      "the old connection goes on", "outlasted the secret: all 34 items came",
      "has one connection as before", "broadcasts came to it once",
      "to the server it is one client, after 4 connections",
      "the connection is cut after 200 payments", "after 600 payments",
      "payments were answered", "effects, none twice", "answered payments has its effect",
      "the file has 1000 records, one for each payment",
    ] {
      #expect(demo.text.contains(statement), "'\(statement)' is not in:\n\(demo.text)")
    }
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a demo that is stopped leaves no server behind`(_ signal: Int32) async throws {
    let demo = try Tool(["demo"])
    let line = try #require(await demo.send(signal, atLineWith: "listens"))
    #expect(await demo.finish().code == 128 + signal)
    let port = try #require(line.split(separator: ":").last.map(String.init))
    // It is gone once nobody listens any more.
    while try await Tool.run("call", "1", "--port", port).code != 3 {
      try Task.checkCancellation()
    }
  }
}
