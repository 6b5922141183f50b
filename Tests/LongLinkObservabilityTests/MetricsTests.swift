// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkCore
@testable import LongLinkObservability
import LongLinkServer
import LongLinkTesting
import Metrics
import MetricsTestKit
import Testing

@Suite struct MetricsTests {
  private let names: [MessageType: String] = [World.echo: "Echo", World.fails: "Fails"]

  /// The labels of all series of a metric but its `rpc.system.name`, as text.
  private func series(_ test: TestMetrics, _ description: MetricDescription) -> Set<String> {
    let labels: [[(String, String)]] =
      switch description.kind {
      case .timer: test.timers(label: description.name).map(\.dimensions)
      case .counter: test.counters(label: description.name).map(\.dimensions)
      case .meter: test.meters(label: description.name).map(\.dimensions)
      }
    return Set(
      labels.map { all in
        all.filter { $0.0 != "rpc.system.name" }.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
      })
  }

  private func count(_ timers: [TestTimer], _ labels: [String: String]) -> Int {
    timers.filter { timer in
      labels.allSatisfy { label in timer.dimensions.contains { $0 == (label.key, label.value) } }
        && timer.dimensions.contains { $0.0 == "error.type" } == (labels["error.type"] != nil)
    }.reduce(0) { $0 + $1.values.count }
  }

  @Test func `calls are timed on both sides, by method and error`() async throws {
    let (test, names) = (TestMetrics(), names)
    let metrics = LongLinkMetrics(factory: test, methods: names)
    try await World.run(
      client: { $0.observe(with: metrics) }, server: { $0.observe(with: metrics) }
    ) { world in
      for _ in 0..<3 { _ = try await world.client.request(World.echo, [1]) }
      for body: [UInt8] in [[4, 18], [1, 244], [9]] {
        _ = try? await world.client.request(World.fails, body)
      }
      _ = try? await world.client.request(99, [])
      try await world.simulation.sleep(for: .seconds(1))
    }
    let server = test.timers(label: "rpc.server.call.duration")
    #expect(count(server, ["rpc.method": "Echo", "rpc.system.name": "longlink"]) == 3)
    #expect(count(server, ["rpc.method": "Fails", "error.type": "_OTHER"]) == 2)
    #expect(count(server, ["rpc.method": "Fails", "error.type": "500"]) == 1)
    #expect(count(server, ["rpc.method": "_OTHER", "error.type": "404"]) == 1)
    let client = test.timers(label: "rpc.client.call.duration")
    #expect(count(client, ["rpc.method": "Echo", "longlink.delivery": "answered"]) == 3)
    #expect(
      count(client, ["rpc.method": "Fails", "error.type": "500", "longlink.delivery": "answered"])
        == 1)
    #expect(
      count(client, ["rpc.method": "_OTHER", "error.type": "404", "longlink.delivery": "refused"])
        == 1)
    #expect(series(test, .rejections) == ["longlink.role=server code=404"])
    for timer in server + client {
      // Virtual time passes in the network only.
      let isIn = timer.dimensions.contains { $0.0 == "longlink.delivery" }
      #expect(timer.values.allSatisfy { isIn ? $0 > 0 : $0 >= 0 }, "\(timer.dimensions)")
      #expect(timer.values.allSatisfy { $0 < 1_000_000_000 })
    }
  }

  @Test func `an item that waits for credit is counted at once`() async throws {
    let test = TestMetrics()
    let metrics = LongLinkMetrics(factory: test)
    try await World.run(
      server: { $0.observe(with: metrics) },
      routes: { server in
        server.routeStream(World.items, .responseItems) { _, _, writer in
          while true { try await writer.write([UInt8](repeating: 7, count: 1_000)) }
        }
      }
    ) { world in
      var items = world.client.stream(World.items, [] as [UInt8]).makeAsyncIterator()
      _ = try await items.next()
      // Nothing more is read, so that the credit ends.
      try await world.simulation.sleep(for: .seconds(1))
      #expect(test.counters(label: "longlink.credit_stalls").map(\.totalValue) == [1])
    }
    #expect(series(test, .stalls) == ["longlink.role=server"])
  }

  @Test func `no peer makes more series`() async throws {
    let (test, names) = (TestMetrics(), names)
    let metrics = LongLinkMetrics(factory: test, methods: names)
    try await World.run(server: { $0.observe(with: metrics) }) { world in
      for type in 100..<400 as Range<UInt32> {
        _ = try? await world.client.request(MessageType(integerLiteral: type), [])
        let code = [UInt8(type >> 8), UInt8(type & 255)]
        _ = try? await world.client.request(World.fails, [7] + code)
      }
      for number in 0..<20 as Range<UInt8> {
        let stranger = try await SimulatedClient.connect(
          to: world.server.addresses[0], on: world.simulation.mainLoop)
        stranger.send(bytes: [UInt8](repeating: number, count: 64))
        try await world.simulation.sleep(for: .seconds(1))
      }
    }
    #expect(
      series(test, .serverCall) == [
        "rpc.method=_OTHER error.type=404", "rpc.method=Fails error.type=_OTHER",
      ])
    #expect(series(test, .ended).count <= 3, "\(series(test, .ended))")
    #expect(series(test, .violations).count <= 3, "\(series(test, .violations))")
  }

  @Test func `connections are counted, and none is left`() async throws {
    let test = TestMetrics()
    let metrics = LongLinkMetrics(factory: test)
    try await World.run(
      client: { $0.observe(with: metrics) },
      server: {
        $0.observe(with: metrics)
        $0.identity.authenticate = { request in
          guard request.credential?.isEmpty != false else { throw Rejection(.forbidden, "no") }
          return .anonymous
        }
      }
    ) { world in
      for role in ["client", "server"] {
        let meter = try test.expectMeter(
          "longlink.connections", [("longlink.role", role), ("state", "open")])
        #expect(meter.values.last == 1)
      }
      let stranger = try await SimulatedClient.connect(
        to: world.server.addresses[0], on: world.simulation.mainLoop)
      stranger.send(.hello(credential: [1]))
      try await world.simulation.sleep(for: .seconds(2))
      let silent = try await SimulatedClient.connect(
        to: world.server.addresses[0], on: world.simulation.mainLoop)
      try await world.simulation.sleep(for: .seconds(60))
      silent.reset()
    }
    for meter in test.meters(label: "longlink.connections") {
      #expect(meter.values.last == 0, "\(meter.dimensions)")
    }
    for (outcome, number) in [("accepted", 1), ("refused", 1), ("failed", 1)] {
      #expect(
        test.counterTotal(
          label: "longlink.handshakes",
          dimensions: [("longlink.role", "server"), ("outcome", outcome)]) == number, "\(outcome)")
    }
    #expect(
      test.counters(label: "longlink.connections.ended").filter {
        $0.dimensions.contains { $0 == ("longlink.role", "server") }
      }.reduce(0) { $0 + $1.totalValue } == 3)
  }

  @Test func `counters are reported by what they have grown`() async throws {
    let test = TestMetrics()
    let metrics = LongLinkMetrics(factory: test)
    try await World.run { world in
      let clock = world.simulation.clock
      let reports = world.simulation.spawn {
        await metrics.report(world.server, every: .seconds(5), clock: clock)
      }
      let others = world.simulation.spawn {
        await metrics.report(world.client, every: .seconds(5), clock: clock)
      }
      for _ in 0..<4 {
        _ = try await world.client.request(World.echo, [1, 2, 3])
        try await world.simulation.sleep(for: .seconds(5))
      }
      _ = try await world.client.request(World.echo, [1, 2, 3])
      reports.cancel()
      others.cancel()
      _ = await (try? reports.value, try? others.value)
      let counters = await world.client.counters()
      for (role, direction) in [("client", "out"), ("server", "in")] {
        let requests = test.counters(label: "longlink.frames").filter { counter in
          [("longlink.role", role), ("direction", direction), ("kind", "request")].allSatisfy {
            label in counter.dimensions.contains { $0 == label }
          }
        }
        #expect(requests.map(\.totalValue) == [5], "\(role)")
      }
      #expect(
        test.counterTotal(
          label: "longlink.bytes", dimensions: [("longlink.role", "client"), ("direction", "out")])
          == Int64(counters.connections.bytesSent))
    }
    let memory = try test.expectMeter("longlink.memory", [("longlink.role", "server")])
    #expect(memory.values.count >= 5)
  }

  @Test func `the page lists all metrics, and the code makes no other`() async throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    let page = try String(
      contentsOf: root.appending(
        path: "Sources/LongLinkObservability/LongLinkObservability.docc/LongLinkObservability.md"),
      encoding: .utf8)
    let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `rpc.") || $0.contains("` | ") }
      .filter {
        $0.hasPrefix("| `longlink.") && $0.count { $0 == "|" } == 6 || $0.hasPrefix("| `rpc.")
      }
      .filter { $0.count { $0 == "|" } == 6 }.map(String.init)
    let expected = MetricDescription.all.map { metric in
      let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
      return "| `\(metric.name)` | \(metric.kind) | \(metric.unit) | \(labels) | \(metric.text) |"
    }
    #expect(rows == expected)

    let test = TestMetrics()
    let metrics = LongLinkMetrics(factory: test)
    try await World.run(
      client: { $0.observe(with: metrics) }, server: { $0.observe(with: metrics) }
    ) { world in
      _ = try? await world.client.request(99, [])
      let clock = world.simulation.clock
      let tasks = [
        world.simulation.spawn { await metrics.report(world.server, clock: clock) },
        world.simulation.spawn { await metrics.report(world.client, clock: clock) },
      ]
      try await world.simulation.sleep(for: .seconds(1))
      for task in tasks { task.cancel() }
      for task in tasks { _ = try? await task.value }
    }
    let made: [(String, [(String, String)])] =
      test.counters.map { ($0.label, $0.dimensions) }
      + test.meters.map { ($0.label, $0.dimensions) }
      + test.timers.map { ($0.label, $0.dimensions) }
    for (name, labels) in made {
      let metric = MetricDescription.all.first { $0.name == name }
      let known = Set((metric?.labels ?? []) + ["longlink.role"])
      #expect(metric != nil, "\(name)")
      #expect(Set(labels.map(\.0)).isSubset(of: known), "\(name): \(labels)")
    }
  }
}
#endif
