// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer

/// Prometheus' text format, version 0.0.4.
extension PortCore {
  func metrics(_ reply: @escaping (PortAnswer) -> Void) {
    survey { answers in
      let totals = self.totals
      let pages = MetricsText(totals)
      let loops = answers.map { ($0.isLive, $0.courier.age) }
      let isReady = self.objections(answers).isEmpty
      let recordings = self.watch.recordings?.counts ?? RecordingGate.Counts()
      // Each method is a piece, which is made when the one before was taken.
      var next = 0
      reply(
        PortAnswer("text/plain; version=0.0.4; charset=utf-8") {
          defer { next += 1 }
          if next == 0 { return pages.head }
          if next <= totals.methods.count { return pages.method(totals.methods[next - 1]) }
          return next == totals.methods.count + 1
            ? pages.rest(loops: loops, isReady: isReady) + MetricsText.recordings(recordings) : nil
        })
    }
  }

  /// The sums of what the loops have last told.
  var totals: ServerTotals {
    ServerTotals(couriersNow.map(\.latest), shared: server.sharedCounters)
  }
}

/// The metrics of a server as text.
struct MetricsText {
  private let totals: ServerTotals

  init(_ totals: ServerTotals) {
    self.totals = totals
  }

  /// Whether a loop lives, and the age of its figures in milliseconds, if there are any.
  typealias Loop = (isLive: Bool, age: Int64?)

  private static let call = "rpc_server_call_duration_seconds"

  /// What stands before the methods.
  var head: String {
    """
    # HELP \(Self.call) Time from the arrival of a request until its response was decided.
    # TYPE \(Self.call) histogram

    """
  }

  func method(_ method: MergedMethod) -> String {
    var text = ""
    let name = Self.escaped(method.name)
    if method.successes.count > 0 { Self.add(method.successes, name, "", to: &text) }
    for (error, times) in method.errors.sorted(by: { $0.key < $1.key }) {
      Self.add(times, name, ",error_type=\"\(error)\"", to: &text)
    }
    return text
  }

  private static func add(
    _ times: Histogram, _ name: String, _ more: String, to text: inout String
  ) {
    let labels = "rpc_system_name=\"longlink\",rpc_method=\"\(name)\"\(more)"
    var sum: UInt64 = 0
    for (bound, count) in zip(Histogram.bounds + ["+Inf"], times.counts) {
      sum += count
      text += "\(call)_bucket{\(labels),le=\"\(bound)\"} \(sum)\n"
    }
    text += "\(call)_sum{\(labels)} \(Double(times.sum) / 1e9)\n"
    text += "\(call)_count{\(labels)} \(sum)\n"
  }

  /// What stands behind the methods.
  func rest(loops: [Loop], isReady: Bool) -> String {
    connections + traffic + server(loops: loops, isReady: isReady)
  }

  private var connections: String {
    let figures = totals.figures
    return Self.family(
      "longlink_connections", "gauge", "Connections by state; handshakes are not counted.",
      [("state", "open", UInt64(totals.open)), ("state", "draining", UInt64(totals.draining))])
      + Self.family(
        "longlink_connections_ended_total", "counter", "Connections that have ended, by reason.",
        EndReason.allCases.map { ("reason", $0.rawValue, figures.ended[$0] ?? 0) })
      + Self.family(
        "longlink_handshakes_total", "counter", "Connections that opened, or ended before.",
        HandshakeOutcome.allCases.map { ("outcome", $0.rawValue, figures.handshakes[$0] ?? 0) })
      + Self.family(
        "longlink_connections_turned_away_total", "counter",
        "Connections that were rejected before their first frame, by the setting that did.",
        Self.sorted(totals.shared.rejections).map { ("setting", $0, $1) })
      + Self.family(
        "longlink_heartbeats_missed_total", "counter",
        "Times that a client was suspected to be dead, and got a ping.",
        totals.counters.suspicions)
      + Self.family(
        "longlink_violations_total", "counter",
        "Connections that ended because the client broke this rule.",
        Self.sorted(figures.violations).map { ("name", $0, $1) })
      + Self.family(
        "longlink_rejections_total", "counter", "Responses with another code than 200.",
        Self.sorted(figures.rejections).map { ("code", $0, $1) })
  }

  private var traffic: String {
    Self.family(
      "longlink_bytes_total", "counter", "Bytes that were read and written.",
      [
        ("direction", "in", totals.counters.bytesReceived),
        ("direction", "out", totals.counters.bytesSent),
      ])
      + Self.header("longlink_frames_total", "counter", "Frames by direction and kind.")
      + totals.frames.map { kind, received, sent in
        """
        longlink_frames_total{direction="in",kind="\(kind)"} \(received)
        longlink_frames_total{direction="out",kind="\(kind)"} \(sent)

        """
      }.joined()
      + Self.family(
        "longlink_credit_stalls_total", "counter", "Times that an item had to wait for credit.",
        totals.creditStalls)
      + Self.family(
        "longlink_drops_total", "counter", "What was dropped, by the name of its counter.",
        totals.drops.map { ("name", $0.name, $0.count) })
      + Self.family(
        "longlink_short_links_total", "counter", "Requests over HTTP.", totals.shortLinks)
  }

  private func server(loops: [Loop], isReady: Bool) -> String {
    Self.family(
      "longlink_requests_running", "gauge", "Requests whose response is not sent yet.",
      UInt64(totals.requestsRunning))
      + Self.family(
        "longlink_queued_bytes", "gauge", "Bytes of output that wait to be written.",
        UInt64(totals.queuedBytes))
      + Self.family(
        "longlink_memory_bytes", "gauge",
        "Bytes that the server holds for all connections, as its limit counts them.",
        UInt64(max(0, totals.shared.bytesHeld)))
      + Self.family(
        "longlink_turns_too_long_total", "counter",
        "Turns of the server's own loops that work blocked for longer than 200 ms.",
        totals.shared.turnsTooLong)
      + Self.family(
        "longlink_loop_live", "gauge", "Whether a loop has run a job within 1 s of this scrape.",
        loops.enumerated().map { ("loop", "\($0.offset)", $0.element.isLive ? 1 : 0) })
      + Self.header(
        "longlink_loop_figures_age_seconds", "gauge", "The age of what a loop has last told.")
      + loops.enumerated().compactMap { index, loop in
        loop.age.map { age in
          "longlink_loop_figures_age_seconds{loop=\"\(index)\"} \(Double(age) / 1_000)\n"
        }
      }.joined()
      + Self.family(
        "longlink_ready", "gauge", "Whether /readyz answers 200.", isReady ? 1 : 0)
  }

  // MARK: The format

  private static func sorted(_ counts: [String: UInt64]) -> [(String, UInt64)] {
    counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private static func header(_ name: String, _ type: String, _ help: String) -> String {
    "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  static func family(
    _ name: String, _ type: String, _ help: String, _ value: UInt64
  ) -> String {
    header(name, type, help) + "\(name) \(value)\n"
  }

  static func family(
    _ name: String, _ type: String, _ help: String,
    _ samples: [(label: String, value: String, count: UInt64)]
  ) -> String {
    header(name, type, help)
      + samples.map { "\(name){\($0.label)=\"\(escaped($0.value))\"} \($0.count)\n" }.joined()
  }

  /// The value of a label, in which a backslash, a quotation mark and a line end are escaped.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
#endif
