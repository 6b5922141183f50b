// SPDX-License-Identifier: Apache-2.0

#if HTTP && Operations
import Foundation
import LongLinkDemoMessages
import LongLinkProtobufC
import LongLinkTestSupport
import Testing

/// `longlink serve --ops`, and `longlink top`.
@Suite(.timeLimit(.minutes(15))) struct OperationsPortTests {
  @Test func `the port is named after the server's, and answers`() async throws {
    let server = try await OperatedServer()
    #expect(try server.get("/livez").hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(try server.get("/readyz").contains(#"{"ready":true,"reasons":[]}"#))
    #expect(try await server.server.call("1", "--text", "x").code == 0)
    let metrics = try server.get("/metrics")
    #expect(metrics.contains(#"_count{rpc_system_name="longlink",rpc_method="Echo"} 1"#))
    server.server.tool.send(SIGTERM)
    #expect(await server.server.tool.finish().code == 0)
  }

  @Test func `what others can reach needs a token, and options need the port`() async throws {
    for (options, word) in [
      (["--ops", "0", "--ops-host", "0.0.0.0"], "it needs a token"),
      (["--ops-token", "x"], "need --ops"), (["--ops-name", "x"], "need --ops"),
      (["--ops", "0", "--ops-token", "a b"], "printable ASCII"),
      (["--ops", "65536"], "not a port"),
    ] {
      let end = try await Tool(["serve", "--port", "0"] + options).finish()
      #expect(end.code == 64 && end.errors.contains(word), "\(end.errors)")
      #expect(end.output.isEmpty)
    }
  }

  @Test func `the handler that blocks a loop is named`() async throws {
    let server = try await OperatedServer("--allow-blocking", "--verbose")
    let body = try BlockRequest(milliseconds: 10_000).hex
    // It blocks again if the port has not been asked in time.
    let block = Task {
      while !Task.isCancelled {
        _ = try await server.server.call("24", "--hex", body, "--timeout", "60")
      }
    }
    var answer = ""
    repeat {
      try Task.checkCancellation()
      answer = try server.get("/livez")
    } while !answer.contains("503")
    #expect(answer.contains(#""blocked_by":"Block""#), "\(answer)")
    block.cancel()
    server.server.tool.send(SIGKILL)
    _ = try? await block.value
    let long = try BlockRequest(milliseconds: 10_001).hex
    let other = try await OperatedServer("--allow-blocking")
    #expect(try await other.server.call("24", "--hex", long).code == 5)
    // Without the option there is no such route.
    #expect(try await RunningServer().call("24", "--hex", body).code == 5)
  }

  @Test func `top prints the state once without a terminal`() async throws {
    let server = try await OperatedServer(token: "secret")
    _ = try await server.server.call("1", "--text", "x")
    for (options, environment) in [
      (["--ops-token", "secret"], [:]), ([], ["LONGLINK_OPS_TOKEN": "secret"]),
    ] {
      let top = try await Tool(
        ["top", "--ops", server.url] + options, environment: environment
      ).finish()
      #expect(top.code == 0, "\(top.errors)")
      #expect(top.text.contains("live, ready") && top.text.contains("Echo"))
      #expect(!top.output.contains(0x1B))
    }
    for options in [[], ["--ops-token", "wrong"]] {
      #expect(try await Tool(["top", "--ops", server.url] + options).finish().code == 9)
    }
    server.server.tool.send(SIGTERM)
    #expect(await server.server.tool.finish().code == 0)
    let gone = try await Tool(["top", "--ops", server.url, "--ops-token", "secret"]).finish()
    #expect(gone.code == 3, "\(gone.errors)")
  }

  // MARK: - Programs that nobody here wrote

  @Test(.unless(Installed.problem("promtool")))
  func `promtool accepts the metrics, and the example's rules`() async throws {
    let server = try await OperatedServer()
    for code in ["404", "429", "1000"] {
      let body = try FailRequest(code: UInt32(code)!, detail: "\"\n\\").hex
      _ = try await server.server.call("4", "--hex", body)
    }
    let metrics = try await Tool(["fetch", "\(server.url)/metrics"]).finish()
    let check = try await Tool(
      ["check", "metrics"], input: metrics.output, program: Installed.path("promtool")
    ).finish()
    #expect(check.code == 0 && check.text.isEmpty && check.errors.isEmpty, "\(check)")
    for arguments in [["rules", "alerts.yml"], ["config", "prometheus.yml"]] {
      let file = Installed.deployment.appending(path: arguments[1]).path
      let check = try await Tool(
        ["check", arguments[0], file], program: Installed.path("promtool")
      ).finish()
      #expect(check.code == 0, "\(check.text)\(check.errors)")
    }
  }

  @Test(.unless(Installed.problem("prometheus")))
  func `Prometheus scrapes the server, and alerts when it is frozen`() async throws {
    let server = try await OperatedServer()
    let folder = FileManager.default.temporaryDirectory.appending(path: "prometheus-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    // The files of the example, in a hurry.
    func copy(_ name: String, _ changes: [(String, String)]) throws {
      var text = try String(
        contentsOf: Installed.deployment.appending(path: name), encoding: .utf8)
      for (old, new) in changes {
        #expect(text.contains(old))
        text = text.replacingOccurrences(of: old, with: new)
      }
      try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
    }
    try copy(
      "prometheus.yml", [(": 15s", ": 1s"), ("127.0.0.1:9001", "127.0.0.1:\(server.port)")])
    try copy("alerts.yml", [("for: 30s", "for: 0s")])
    let listener = try RawClient.listen()
    close(listener.descriptor)
    let prometheus = try Tool(
      [
        "--config.file=\(folder.path)/prometheus.yml", "--storage.tsdb.path=\(folder.path)/data",
        "--web.listen-address=127.0.0.1:\(listener.port)",
      ], program: Installed.path("prometheus"))
    func ask(_ path: String) throws -> String {
      try Task.checkCancellation()
      #expect(prometheus.isRunning)
      return (try? OperatedServer.get(path, from: listener.port)) ?? ""
    }
    while try !ask("/api/v1/query?query=longlink_ready").contains(#","1"]"#) {}
    server.server.tool.send(SIGSTOP)
    var alerts = ""
    while !alerts.contains(#""state":"firing""#) { alerts = try ask("/api/v1/alerts") }
    #expect(alerts.contains(#""alertname":"LongLinkDown""#))
    server.server.tool.send(SIGCONT)
    while alerts.contains("LongLinkDown") { alerts = try ask("/api/v1/alerts") }
    prometheus.send(SIGTERM)
    #expect(await prometheus.finish().code == 0)
  }

  @Test(.unless(Installed.problem("chromium")))
  func `a browser shows each page, without an error`() async throws {
    let server = try await OperatedServer()
    let peer = try await server.server.startSleep(milliseconds: 600_000)
    func show(_ path: String, _ options: [String] = ["--dump-dom"]) async throws -> Finished {
      let folder = FileManager.default.temporaryDirectory.appending(path: "chromium-\(UUID())")
      defer { try? FileManager.default.removeItem(at: folder) }
      return try await Tool(
        [
          "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--log-level=0",
          "--user-data-dir=\(folder.path)",
        ] + options + ["\(server.url)\(path)"], program: Installed.path("chromium")
      ).finish()
    }
    var pages: [String] = ["/"]
    var seen: Set<String> = []
    while let path = pages.popLast() {
      guard seen.insert(path).inserted else { continue }
      let page = try await show(path)
      #expect(page.text.contains("</nav>"), "\(path): \(page.errors)")
      // What the policy of the page forbids, or does not load, is told by the console.
      #expect(!page.errors.contains("CONSOLE"), "\(path): \(page.errors)")
      for link in page.text.matches(of: /href="(\/[^"]*)"/) {
        pages.append(link.1.replacingOccurrences(of: "&amp;", with: "&"))
      }
    }
    #expect(seen.isSuperset(of: ["/", "/connections", "/connections?state=closed", "/exchanges"]))
    #expect(seen.contains { $0.hasPrefix("/connections/") })
    peer.send(SIGKILL)
  }
}

/// A `longlink serve` with an operations port.
struct OperatedServer {
  let server: RunningServer
  /// The operations port, as text.
  let port: String
  private let token: String?

  init(_ options: String..., token: String? = nil) async throws {
    let environment = token.map { ["LONGLINK_OPS_TOKEN": $0] } ?? [:]
    server = try await RunningServer(["--ops", "0"] + options, environment: environment)
    let line = try #require(await server.tool.nextLine())
    let prefix = "ops on 127.0.0.1:"
    try #require(line.hasPrefix(prefix))
    port = String(line.dropFirst(prefix.count))
    self.token = token
  }

  var url: String { "http://127.0.0.1:\(port)" }

  /// The whole answer.
  func get(_ path: String) throws -> String { try OperatedServer.get(path, from: port) }

  static func get(_ path: String, from port: String) throws -> String {
    let head = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    let answer = try RawClient(port: port).sendAndRead(Array(head.utf8))
    return String(decoding: answer, as: UTF8.self)
  }
}

/// Programs that tests start, where there are any.
enum Installed {
  static let deployment = VectorStream.vectors.deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Examples/Deployment")

  static func path(_ name: String) -> URL { URL(filePath: "/usr/bin/\(name)") }

  static func problem(_ name: String) -> String? {
    FileManager.default.isExecutableFile(atPath: path(name).path)
      ? nil : "there is no \(name) in /usr/bin"
  }
}
#endif
