// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkOps
import LongLinkServer
import LongLinkTestSupport
import Testing

/// What Examples/Deployment has fits to what the port says, and to the programs that read it.
@Suite struct DeploymentTests {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  // MARK: Metrics

  /// The labels of each metric in the table of the page.
  private func table() throws -> [String: Set<String>] {
    let page = try Self.text("Sources/LongLinkOps/LongLinkOps.docc/LongLinkOps.md")
    var metrics: [String: Set<String>] = [:]
    for row in page.matches(of: /\n\| `((?:longlink|rpc)_[a-z_]+)` \| ([^|]*)\|/) {
      let labels = row.2.matches(of: /`([a-z_]+)`/).map { String($0.1) }
      metrics[String(row.1)] = Set(labels)
    }
    return metrics
  }

  @Test func `the page's table has the metrics and labels that the port shows`() async throws {
    let table = try table()
    try await OpsStage.run { stage in
      let client = try await stage.client()
      _ = try await client.request(OpsStage.echo, [1])
      _ = try? await client.request(OpsStage.fail, [1, 173])
      let body = try await stage.request("/metrics").body
      let shown = body.matches(of: /HELP ([a-z_]+)/).map { String($0.1) }
      #expect(Set(shown) == Set(table.keys))
      for sample in body.matches(of: /\n([a-z_]+)\{(.*)\}/) {
        let name = String(sample.1.replacing(/_(bucket|sum|count)$/, with: ""))
        let labels = sample.2.matches(of: /([a-z_]+)="/).map { String($0.1) }
        let known = try #require(table[name]).union(["le"])
        #expect(known.isSuperset(of: labels), "\(name): \(labels)")
      }
    }
  }

  /// What a query may consist of besides metrics and labels.
  private static let words: Set<String> = [
    "and", "by", "count", "histogram_quantile", "increase", "label_values", "min", "or", "rate",
    "sum", "up", "vector",
  ]

  /// What a query names that is not there; with the metrics that it uses.
  private func judge(
    _ query: String, _ table: [String: Set<String>]
  ) -> (unknown: [String], metrics: Set<String>) {
    // Values of labels, times and variables are no names.
    let plain = query.replacing(/"[^"]*"/, with: "").replacing(/\[[^\]]*\]/, with: "")
    // What Prometheus adds to each scrape.
    let added: Set<String> = ["instance", "job"]
    var (unknown, metrics, labels): ([String], Set<String>, Set<String>) = ([], [], added)
    var others: [String] = []
    for match in plain.matches(of: /([a-z_]+)(?:\{([^}]*)\})?/) {
      let name = String(match.1)
      let metric = name.replacing(/_(bucket|count)$/, with: "")
      guard var own = table[metric] else {
        others.append(name)
        continue
      }
      metrics.insert(metric)
      if metric != name { own.insert("le") }
      own.formUnion(added)
      labels.formUnion(own)
      for label in (match.2 ?? "").matches(of: /([a-z_]+)[=!]/) where !own.contains("\(label.1)") {
        unknown.append("\(name){\(label.1)}")
      }
    }
    unknown += others.filter { !Self.words.contains($0) && !labels.contains($0) }
    return (unknown, metrics)
  }

  @Test func `a query that names what is not there is found`() throws {
    let table = try table()
    for (query, unknown) in [
      ("sum by (name) (rate(longlink_drops_total[5m]))", [] as Set<String>),
      ("longlink_drop_total", ["longlink_drop_total"]), ("up{job=\"x\"} == 0", []),
      ("sum by (reason) (longlink_drops_total)", ["reason"]),
      ("longlink_drops_total{reason=\"x\"} > 0", ["longlink_drops_total{reason}"]),
      ("summ(longlink_ready)", ["summ"]), ("lnglink_ready", ["lnglink_ready"]),
    ] {
      #expect(Set(judge(query, table).unknown) == unknown, "\(query)")
    }
  }

  @Test func `the dashboard's queries name what is in the table, and leave nothing out`() throws {
    let table = try table()
    let dashboard = try Dashboard.ofExample()
    var used: Set<String> = []
    for panel in dashboard.panels {
      for target in panel.targets ?? [] {
        let (unknown, metrics) = judge(target.expr, table)
        #expect(unknown == [], "\(panel.title): \(target.expr)")
        used.formUnion(metrics)
        // The legend shows labels that the query keeps.
        for label in target.legendFormat.matches(of: /\{\{(\w+)\}\}/) {
          let isKept =
            target.expr.contains(try Regex("by \\([^)]*\\b\(label.1)\\b"))
            || !target.expr.contains("sum") && label.1 == "instance"
          #expect(isKept, "\(panel.title): \(label.1)")
        }
      }
    }
    #expect(Set(table.keys).subtracting(used) == [])
    for variable in dashboard.templating.list {
      if let query = variable.definition { #expect(judge(query, table).unknown == []) }
    }
    #expect(Set(dashboard.panels.map(\.id)).count == dashboard.panels.count)
  }

  @Test func `the alerts name what is in the table`() throws {
    let table = try table()
    let alerts = try Self.text("Examples/Deployment/alerts.yml")
    let queries = alerts.matches(of: /expr:([\s\S]*?)\n +(?:for|labels):/).map {
      String($0.1).replacing(">-", with: "")
    }
    #expect(queries.count == alerts.matches(of: /- alert:/).count)
    for query in queries { #expect(judge(query, table).unknown == [], "\(query)") }
    for label in alerts.matches(of: /\$labels\.(\w+)/) {
      let known = table.values.reduce(into: Set(["instance"])) { $0.formUnion($1) }
      #expect(known.contains("\(label.1)"), "\(label.1)")
    }
  }

  // MARK: Programs that read the files

  private static func problem(_ name: String) -> String? {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/\(name)")
      ? nil : "there is no \(name) in /usr/bin"
  }

  private func run(
    _ name: String, _ arguments: [String], _ environment: [String: String]? = nil
  ) async throws -> (code: Int32, text: String) {
    let process = Process()
    process.environment = environment
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/\(name)")
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = output
    let end = Watched<Int32?>(nil)
    process.terminationHandler = { process in end.change { $0 = process.terminationStatus } }
    try process.run()
    let code = await end.until { $0 != nil } ?? -1
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    return (code, String(decoding: text, as: UTF8.self))
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "longlink-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  @Test(.unless(problem("promtool")))
  func `Prometheus can parse the dashboard's queries`() async throws {
    var rules = "groups:\n- name: dashboard\n  rules:\n"
    for target in try Dashboard.ofExample().panels.flatMap({ $0.targets ?? [] }) {
      let query = target.expr.replacing("$__rate_interval", with: "1m")
      rules += "  - record: query\n    expr: '\(query)'\n    labels: {of: '\(rules.utf8.count)'}\n"
    }
    try await withFolder { folder in
      let file = folder.appending(path: "rules.yml")
      try rules.write(to: file, atomically: true, encoding: .utf8)
      let (code, text) = try await run("promtool", ["check", "rules", file.path])
      #expect(code == 0, "\(text)")
    }
  }

  @Test(.unless(problem("systemd-analyze")))
  func `systemd accepts the unit`() async throws {
    let unit = try Self.text("Examples/Deployment/echo-service.service")
    let start = "ExecStart=/usr/local/bin/EchoService"
    #expect(unit.contains("\n\(start) "))
    func verify(_ unit: String) async throws -> (code: Int32, text: String) {
      var result: (code: Int32, text: String) = (-1, "")
      try await withFolder { folder in
        let file = folder.appending(path: "echo-service.service")
        // The program is not installed here.
        try unit.replacing(start, with: "ExecStart=/bin/true")
          .write(to: file, atomically: true, encoding: .utf8)
        result = try await run("systemd-analyze", ["verify", "--man=no", file.path])
      }
      return result
    }
    let (code, text) = try await verify(unit)
    #expect(code == 0 && text.isEmpty, "\(text)")
    #expect(try await verify(unit.replacing("WatchdogSec", with: "WatchDogSec")).text != "")
    #expect(unit.contains("\nType=notify\n") && unit.contains("\nWatchdogSec=30s\n"))
  }

  @Test(.unless(problem("bash")))
  func `the image's health check tells a server that hangs from one that lives`() async throws {
    let file = try Self.text("Examples/Deployment/Dockerfile")
    let line = try #require(file.firstMatch(of: /\n +CMD (\[.*\])\n/))
    let command = try JSONDecoder().decode([String].self, from: Data(line.1.utf8))
    #expect(command.first == "bash")
    try await OpsStage.run(routes: { server in
      server.route(60) { request in
        Blocking.hold(request.body)
        return request.body
      }
    }) { stage in
      func check(_ port: Int) async throws -> Bool {
        let arguments = Array(command.dropFirst())
        return try await run("bash", arguments, ["OPERATIONS_PORT": "\(port)"]).code == 0
      }
      #expect(try await check(stage.port))
      let client = try await stage.client()
      let blocking = Blocking.begin()
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      #expect(try await !check(stage.port))
      blocking.release()
      _ = try await held.value
      await stage.operations.shutDown()
      #expect(try await !check(stage.port))
    }
  }
}

/// What the tests read of the dashboard, in Grafana's form.
private struct Dashboard: Decodable {
  struct Panel: Decodable {
    struct Target: Decodable {
      let expr: String
      let legendFormat: String
    }

    let id: Int
    let title: String
    let targets: [Target]?
  }

  struct Templating: Decodable {
    struct Variable: Decodable {
      let definition: String?
    }

    let list: [Variable]
  }

  let panels: [Panel]
  let templating: Templating

  static func ofExample() throws -> Dashboard {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Examples/Deployment/dashboard.json")
    return try JSONDecoder().decode(Dashboard.self, from: Data(contentsOf: file))
  }
}
#endif
