// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationXML
import LongLink
import LongLinkCommandSupport
import LongLinkDriver
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

@testable import LongLinkCommand

/// Storms: what the product's clients do when they all lose their server at once.
@Suite(.timeLimit(.minutes(15))) struct StormTests {
  private static let window = Duration.seconds(30)
  private static let policy = StormPolicy.product(
    name: "longlink", StormCommand.Policy.spread.reconnect(window: window))

  private static func options(_ clients: Int, outage: Duration) -> StormOptions {
    StormOptions(clients: clients, outage: outage, window: window, seed: 1)
  }

  @Test(arguments: [0, 5, 60, 300])
  func `no second has many more attempts than the even rate`(_ outage: Int) {
    let options = StormTests.options(20_000, outage: .seconds(outage))
    let curve = Storm.run(options, StormTests.policy)
    #expect(Double(curve.peakAttempts) <= 1.3 * options.evenRate)
    #expect(curve.peakAccepted <= curve.peakAttempts)
    #expect(curve.accepted.reduce(0, +) == options.clients)
    #expect(curve.accepted.prefix(outage).allSatisfy { $0 == 0 })
    // The longest pause is a fifth over the window.
    #expect(curve.allBack <= .seconds(outage) + StormTests.window * 1.2 + .seconds(1))
  }

  @Test(arguments: StormPolicy.others)
  func `every other policy has a peak far above the even rate`(_ policy: StormPolicy) {
    let options = StormTests.options(2_000, outage: .seconds(60))
    let curve = Storm.run(options, policy)
    #expect(Double(curve.peakAttempts) > 3 * options.evenRate)
    #expect(curve.accepted.reduce(0, +) == options.clients)
  }

  @Test func `a storm of real clients is like the computed one`() async throws {
    let outage = Duration.seconds(50)
    let real = try await RealStorm.run(clients: 250, outage: outage, window: StormTests.window)
    let options = StormTests.options(20_000, outage: outage)
    let computed = Storm.run(options, StormTests.policy)
    #expect(real.accepted.reduce(0, +) == 250)
    // Kolmogorov's distance; samples of 250 of one distribution are rarely 0.12 apart.
    #expect(StormTests.distance(real.attempts, computed.attempts) < 0.1)
    #expect(StormTests.distance(real.accepted, computed.accepted) < 0.12)
    let other = Storm.run(options, .exponential)
    #expect(StormTests.distance(real.attempts, other.attempts) > 0.2)
  }

  private static func distance(_ left: [Int], _ right: [Int]) -> Double {
    let totals = (Double(left.reduce(0, +)), Double(right.reduce(0, +)))
    var sums = (0.0, 0.0)
    var distance = 0.0
    for second in 0..<max(left.count, right.count) {
      sums.0 += second < left.count ? Double(left[second]) / totals.0 : 0
      sums.1 += second < right.count ? Double(right[second]) / totals.1 : 0
      distance = max(distance, abs(sums.0 - sums.1))
    }
    return distance
  }

  @Test func `the same seed gives the same storm`() {
    let options = StormTests.options(500, outage: .seconds(5))
    #expect(Storm.run(options, StormTests.policy) == Storm.run(options, StormTests.policy))
    var other = options
    other.seed = 2
    #expect(Storm.run(options, StormTests.policy) != Storm.run(other, StormTests.policy))
  }

  @Test func `the command prints a row for each policy and draws a plot`() async throws {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-storm-\(UUID().uuidString).svg").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let end = try await Tool.run(
      "simulate", "storm", "--clients", "500", "--outage", "5", "--svg", path)
    #expect(end.code == 0, "\(end.errors)")
    let rows = end.lines.drop { !$0.hasPrefix("policy") }
      .prefix { !$0.hasPrefix("The longer wait") }
    #expect(rows.count == 5)
    #expect(rows.dropFirst().first?.hasPrefix("longlink spread") == true)
    let counter = ElementCounter()
    let parser = XMLParser(data: try Data(contentsOf: URL(fileURLWithPath: path)))
    parser.delegate = counter
    #expect(parser.parse())
    #expect(counter.counts["svg"] == 1)
    #expect(counter.counts["polyline"] == 4)
  }

  @Test func `the table groups digits, and says what a longer wait costs and buys`() {
    let options = StormTests.options(20_000, outage: .seconds(60))
    let policies = [StormTests.policy] + StormPolicy.others
    let results = policies.map { StormResult(policy: $0, curve: Storm.run(options, $0)) }
    let lines = StormTable(options: options, results: results).lines
    #expect(lines.first?.hasPrefix("20,000 clients lose their server") == true)
    #expect(lines.contains { $0.hasPrefix("at once, every 0.1 s") && $0.contains(" 200,000 ") })
    let price = lines.drop { !$0.hasPrefix("The longer wait costs time: ") }.joined(separator: " ")
    let usual = results[2]
    #expect(price.contains("(\(usual.policy.name))"))
    #expect(price.contains("not \(usual.curve.peakAttempts.grouped)"))
    #expect(lines.allSatisfy { $0.count <= 100 })
    // Nothing is bought by a policy that waits no longer.
    let alone = StormTable(options: options, results: [results[2], results[3]]).lines
    #expect(!alone.contains { $0.contains("costs time") })
  }

  @Test(arguments: [
    ["--outage", "-1"], ["--outage", "4000"], ["--window", "0"], ["--clients", "0"],
    ["--policy", "none"],
  ])
  func `a storm with impossible options is refused`(_ arguments: [String]) async throws {
    #expect(try await Tool(["simulate", "storm"] + arguments).finish().code == 64)
  }

  @Test func `a plot that cannot be written is reported`() async throws {
    let end = try await Tool.run(
      "simulate", "storm", "--clients", "10", "--outage", "0", "--svg", "/nowhere/storm.svg")
    #expect(end.code == 1)
    #expect(end.errors.contains("/nowhere/storm.svg"))
  }

  @Test(arguments: zip([1, 12, 13, 60, 130, 400], [1, 1, 2, 5, 20, 50]))
  func `the marks of an axis are few and round`(_ seconds: Int, _ step: Int) {
    #expect(StormPlot.step(for: seconds) == step)
  }
}

private final class ElementCounter: NSObject, XMLParserDelegate {
  private(set) var counts: [String: Int] = [:]

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    counts[name, default: 0] += 1
  }
}

/// A storm of clients and a server that are real but for their network and their time.
private enum RealStorm {
  static func run(clients: Int, outage: Duration, window: Duration) async throws -> StormCurve {
    let simulation = Simulation(seed: 3)
    let serverLoop = simulation.eventLoop(named: "server")
    let curve = Mutex(StormCurve())
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 9000)])
      configuration.logger.logLevel = .critical
      // All clients have one address.
      configuration.addresses.maxConnectionRate = 100_000
      let server = try LongLinkServer(configuration, on: [serverLoop])
      server.route(1) { request in request.body }
      try await server.start()
      let all = try (0..<clients).map { _ in try client(window, on: simulation.mainLoop) }
      // An answer each: the links have worked.
      for client in all { _ = try await client.request(1, [1]) }
      let begin = simulation.now
      for client in all {
        client.observeLinks { time, event in
          guard case .attempt = event else { return }
          let since = begin.duration(to: time)
          curve.withLock { $0.addAttempt(at: since, isAccepted: since >= outage) }
        }
      }
      simulation.network.connects = .refused
      simulation.network.loseAllLinks()
      try await simulation.sleep(for: outage)
      simulation.network.connects = .normal
      while !all.allSatisfy(isConnected) { try await simulation.sleep(for: .milliseconds(100)) }
      for client in all { await client.close(within: .zero) }
      await server.shutDown(within: .zero)
    }
    return curve.withLock { $0 }
  }

  private static func client(_ window: Duration, on loop: EventLoop) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("10.0.0.1", port: 9000)])
    configuration.reconnect = StormCommand.Policy.spread.reconnect(window: window)
    configuration.logger.logLevel = .critical
    return try LongLinkClient(configuration, on: loop)
  }

  private static func isConnected(_ client: LongLinkClient) -> Bool {
    if case .connected = client.state { true } else { false }
  }
}
