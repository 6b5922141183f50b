// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import NIOCore

/// The first page: what the server does now.
extension PortCore {
  private struct Overview: Encodable {
    let name: String
    let upSeconds: Int64
    let live: Bool
    let ready: Bool
    let reasons: [String]
    let connections: Connections
    let requestsRunning: Int
    let perSecond: PerSecond
    let latency: Latency
    let queuedBytes: Int
    let memoryBytes: Int
    let loops: [LoopState]
    /// The loops whose figures are old; nil if there are none.
    let stale: [StaleLoop]?
    let methods: [Method]
    /// The number of methods for which the page has no room; nil if there are none.
    let leftOut: Int?
    let ended: [String: UInt64]
    let drops: [String: UInt64]
  }

  private struct Connections: Encodable {
    let open: Int
    let draining: Int
    let handshakes: Int
    let most: Int
  }

  private struct PerSecond: Encodable {
    let requests: Double
    let errors: Double
    let bytesIn: Double
    let bytesOut: Double
    let drops: Double
  }

  private struct Latency: Encodable {
    let p50Ms: Nullable<Double>
    let p99Ms: Nullable<Double>

    init(_ times: Histogram?) {
      p50Ms = Nullable(times?.milliseconds(of: 0.5).map { ($0 * 1_000).rounded() / 1_000 })
      p99Ms = Nullable(times?.milliseconds(of: 0.99).map { ($0 * 1_000).rounded() / 1_000 })
    }

    var texts: [String] {
      [p50Ms, p99Ms].map { $0.value.map { PageText.number($0) + " ms" } ?? "–" }
    }
  }

  private struct Method: Encodable {
    let method: String
    let requests: UInt64
    let errors: UInt64
    /// Of all requests since the start.
    let latency: Latency

    init(_ merged: MergedMethod) {
      method = merged.name
      let all = merged.all
      requests = all.count
      errors = all.count - merged.successes.count
      latency = Latency(all)
    }
  }

  /// The most methods on the page: those with the most requests.
  private static let mostMethods = 20

  /// Keeps the values of this instant for charts and rates.
  func sample(then: @escaping () -> Void) {
    survey { answers in
      self.history.add(self.sample(answers))
      then()
    }
  }

  private func sample(_ answers: [LoopAnswer]) -> History.Sample {
    let totals = totals
    let delays = answers.map { $0.isWhole ? Double($0.courier.delay) / 1e6 : 1_000 }
    return History.Sample(
      at: .now(), times: totals.times, errors: totals.errors,
      bytesIn: totals.counters.bytesReceived, bytesOut: totals.counters.bytesSent,
      drops: totals.drops.reduce(0) { $0 + $1.count },
      connections: totals.open + totals.draining, delay: delays.max() ?? 0)
  }

  func overview(_ form: PortRequest.Form, _ reply: @escaping (PortAnswer) -> Void) {
    survey { answers in
      let now = self.sample(answers)
      let page = self.overview(now, answers)
      switch form {
      case .json: reply(.json(page))
      case .text: reply(.text(self.text(of: page, answers.notes, self.charts(now))))
      case .html: reply(.html(self.html(of: page, answers.notes, self.charts(now))))
      }
    }
  }

  private func overview(_ now: History.Sample, _ answers: [LoopAnswer]) -> Overview {
    let totals = totals
    let rates = history.rates(until: now)
    let reasons = objections(answers)
    let (methods, leftOut) = methods(totals)
    func rounded(_ value: Double?) -> Double { ((value ?? 0) * 1_000).rounded() / 1_000 }
    return Overview(
      name: server.configuration.name, upSeconds: (.now() - started).nanoseconds / 1_000_000_000,
      live: answers.allSatisfy(\.isLive), ready: reasons.isEmpty, reasons: reasons,
      connections: Connections(
        open: totals.open, draining: totals.draining, handshakes: totals.shared.handshakes,
        most: server.configuration.limits.maxConnections),
      requestsRunning: totals.requestsRunning,
      perSecond: PerSecond(
        requests: rounded(rates?.requests), errors: rounded(rates?.errors),
        bytesIn: rounded(rates?.bytesIn), bytesOut: rounded(rates?.bytesOut),
        drops: rounded(rates?.drops)),
      latency: Latency(rates?.times), queuedBytes: totals.queuedBytes,
      memoryBytes: max(0, totals.shared.bytesHeld), loops: loopStates(answers),
      stale: answers.stale, methods: methods, leftOut: leftOut == 0 ? nil : leftOut,
      ended: Dictionary(
        uniqueKeysWithValues: totals.figures.ended.map { ($0.key.rawValue, $0.value) }),
      drops: Dictionary(
        uniqueKeysWithValues: totals.drops.filter { $0.count > 0 }.map { ($0.name, $0.count) }))
  }

  /// The methods on the page, and the number of those for which it has no room.
  private func methods(_ totals: ServerTotals) -> ([Method], leftOut: Int) {
    let all = totals.methods.map(Method.init).filter { $0.requests > 0 }
      .sorted { $0.requests > $1.requests }
    // Names can be long.
    var room = PortLimits.page / 4
    let shown = all.prefix(Self.mostMethods).prefix { method in
      room -= method.method.utf8.count
      return room >= 0
    }
    return (Array(shown), all.count - shown.count)
  }

  private func charts(_ now: History.Sample) -> [Chart] {
    let steps = history.steps(until: now)
    let rates = history.rates(until: now)
    let samples = history.samples + [now]
    func rate(_ title: String, _ path: KeyPath<History.Rates, Double>) -> Chart {
      Chart(
        title: title, value: PageText.number(rates?[keyPath: path] ?? 0),
        values: steps.map { $0[keyPath: path] })
    }
    return [
      rate("requests per second", \.requests), rate("errors per second", \.errors),
      Chart(
        title: "99 % of requests, ms",
        value: rates?.times.milliseconds(of: 0.99).map(PageText.number) ?? "–",
        values: steps.map { $0.times.milliseconds(of: 0.99) ?? 0 }),
      Chart(
        title: "connections", value: "\(now.connections)",
        values: samples.map { Double($0.connections) }),
      rate("bytes in per second", \.bytesIn), rate("bytes out per second", \.bytesOut),
      rate("drops per second", \.drops),
      Chart(
        title: "slowest loop, ms", value: PageText.number(now.delay), values: samples.map(\.delay)),
    ]
  }

  // MARK: Forms

  private func state(of page: Overview) -> String {
    let health = page.live ? "live" : "NOT LIVE"
    let readiness =
      page.ready ? "ready" : "NOT READY (\(page.reasons.joined(separator: ", ")))"
    return "up \(PageText.time(page.upSeconds * 1_000_000_000)), \(health), \(readiness)"
  }

  private func facts(of page: Overview) -> [(String, String)] {
    let connections = page.connections
    return [
      (
        "connections",
        "\(connections.open) open, \(connections.draining) draining, \(connections.handshakes) in "
          + "handshake, at most \(connections.most)"
      ),
      ("requests running", "\(page.requestsRunning)"),
      ("latency", "50 % \(page.latency.texts[0]), 99 % \(page.latency.texts[1])"),
      ("output queued", PageText.bytes(Double(page.queuedBytes))),
      ("memory held", PageText.bytes(Double(page.memoryBytes))),
      ("ended", counts(page.ended)), ("dropped", counts(page.drops)),
    ]
  }

  private func counts(_ counts: [String: UInt64]) -> String {
    counts.isEmpty
      ? "–"
      : counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        .map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }

  private func loopCells(_ loop: LoopState) -> [String] {
    [
      "\(loop.loop)", loop.live ? "live" : "NOT LIVE",
      PageText.time(loop.ranMsAgo * 1_000_000) + " ago", loop.blockedBy.value ?? "",
    ]
  }

  private func methodCells(_ method: Method) -> [String] {
    [method.method, "\(method.requests)", "\(method.errors)"] + method.latency.texts
  }

  private static let loopHeadings = ["loop", "state", "ran", "blocked by"]
  private static let methodHeadings = ["method", "requests", "errors", "50 %", "99 %"]

  private func text(of page: Overview, _ notes: [String], _ charts: [Chart]) -> String {
    let name = page.name.isEmpty ? "longlink" : page.name
    return "\(name): \(state(of: page))\n\(notes.map { $0 + "\n" }.joined())\n"
      + TextTable.of(["", ""], facts(of: page).map { [$0.0, $0.1] }).drop { $0 == "\n" } + "\n"
      + TextTable.of(
        ["now", "", "last ten minutes"], charts.map { [$0.value, $0.title, $0.blocks] },
        numbers: [0]) + "\n"
      + TextTable.of(Self.loopHeadings, page.loops.map(loopCells)) + "\n"
      + TextTable.of(
        Self.methodHeadings, page.methods.map(methodCells), numbers: [1, 2, 3, 4])
      + (page.leftOut.map { PageText.note(ofLeftOut: $0, "methods") + "\n" } ?? "")
  }

  private func html(of page: Overview, _ notes: [String], _ charts: [Chart]) -> HTMLPage {
    var html = HTMLPage(page.name.isEmpty ? "LongLink" : page.name, refresh: 2)
    let isWell = page.live && page.ready
    html.body =
      "<p class=\"\(isWell ? "soft" : "bad")\">\(HTMLPage.escaped(state(of: page)))</p>"
      + notes.map { "<p class=\"bad\">\($0)</p>" }.joined()
      + "<div class=\"cards\">\(charts.map(\.html).joined())</div>"
    html.addTable([], facts(of: page).map { HTMLPage.row([$0.0, HTMLPage.escaped($0.1)]) })
    html.body += "<h2>Loops</h2>"
    html.addTable(
      Self.loopHeadings, page.loops.map { HTMLPage.row(loopCells($0).map(HTMLPage.escaped)) })
    html.body += "<h2>Methods</h2>"
    html.addTable(
      Self.methodHeadings, page.methods.map { HTMLPage.row(methodCells($0).map(HTMLPage.escaped)) })
    if let leftOut = page.leftOut {
      html.body += "<p>\(PageText.note(ofLeftOut: leftOut, "methods"))</p>"
    }
    return html
  }
}
#endif
