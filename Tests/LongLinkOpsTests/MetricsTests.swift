// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkCore
import LongLinkOps
import LongLinkServer
import LongLinkTestSupport
import Testing

/// What `/metrics` says.
@Suite struct MetricsTests {
  @Test func `the text follows the format, and metrics without labels are always there`()
    async throws
  {
    try await OpsStage.run(starts: false) { stage in
      let body = try await stage.request("/metrics").body
      #expect(try Self.problems(of: body) == [])
      for name in [
        "longlink_heartbeats_missed_total", "longlink_queued_bytes", "longlink_credit_stalls_total",
        "longlink_turns_too_long_total", "longlink_memory_bytes", "longlink_ready",
      ] {
        #expect(body.contains("\n\(name) 0\n"), "\(name)")
      }
    }
  }

  @Test func `requests are counted by method and error, those of strangers under one name`()
    async throws
  {
    try await OpsStage.run(server: { $0.loops = 2 }) { stage in
      for _ in 0..<2 {
        let client = try await stage.client()
        _ = try await client.request(OpsStage.echo, [1, 2, 3])
        _ = try await client.request(OpsStage.unnamed, [1])
        for type in [600, 601, 602] as [MessageType] {
          _ = try? await client.request(type, [])
        }
        for code in [429, 1_234, 500, 7_000] as [UInt32] {
          _ = try? await client.request(OpsStage.fail, [UInt8(code >> 8), UInt8(code & 255)])
        }
        _ = try? await client.request(
          OpsStage.hang, [], options: RequestOptions(timeout: .milliseconds(20)))
      }
      func count(_ method: String, _ error: String? = nil) -> String {
        "rpc_server_call_duration_seconds_count{rpc_system_name=\"longlink\",rpc_method=\""
          + method + "\"" + (error.map { ",error_type=\"\($0)\"" } ?? "") + "}"
      }
      // The server's own deadline may come a little after the client's.
      try await until {
        let metrics = try await stage.request("/metrics")
        return [count("Hang", "408"), count("Hang", "499")].compactMap(metrics.metric).reduce(0, +)
          == 2
      }
      let metrics = try await stage.request("/metrics")
      #expect(try Self.problems(of: metrics.body) == [])
      #expect(metrics.metric(count("Echo")) == 2)
      #expect(metrics.metric(count("_OTHER")) == 2)
      #expect(metrics.metric(count("_OTHER", "404")) == 6)
      #expect(metrics.metric(count("test.Stage/Fail", "429")) == 2)
      #expect(metrics.metric(count("test.Stage/Fail", "500")) == 2)
      #expect(metrics.metric(count("test.Stage/Fail", "_OTHER")) == 4)
      #expect(metrics.metric("longlink_rejections_total{code=\"404\"}") == 6)
      #expect(metrics.metric("longlink_rejections_total{code=\"_OTHER\"}") == 4)
      #expect(metrics.metric("longlink_connections{state=\"open\"}") == 2)
      #expect(metrics.metric("longlink_handshakes_total{outcome=\"accepted\"}") == 2)
      #expect((metrics.metric("longlink_bytes_total{direction=\"in\"}") ?? 0) > 100)
      #expect(
        (metrics.metric("longlink_frames_total{direction=\"in\",kind=\"request\"}") ?? 0) >= 20)
      #expect(metrics.metric("longlink_ready") == 1)
    }
  }

  @Test func `names of the configuration stand in for those that are missing`() async throws {
    try await OpsStage.run {
      $0.methods = [OpsStage.unnamed: "Na\"me\\d\nx"]
    } _: { stage in
      let client = try await stage.client()
      _ = try await client.request(OpsStage.unnamed, [1])
      let body = try await stage.request("/metrics").body
      #expect(try Self.problems(of: body) == [])
      #expect(body.contains(#"rpc_method="Na\"me\\d\nx""#))
    }
  }

  @Test func `each end and violation is counted once, when its connection closes`() async throws {
    try await OpsStage.run { stage in
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      let peer = try await RawPeer.connect(to: port, staysOpen: true)
      peer.send([UInt8](repeating: 0xFF, count: 64))
      // The goaway has come, and the server waits until the client closes.
      await peer.heard.until { !$0.bytes.isEmpty }
      // It had never opened, so that it is none of those that drain.
      #expect(try await stage.metric("longlink_connections{state=\"draining\"}") == 0)
      peer.close()
      try await until {
        try await stage.metric("longlink_connections_ended_total{reason=\"violation\"}") == 1
      }
      let metrics = try await stage.request("/metrics")
      #expect(metrics.metric("longlink_violations_total{name=\"lengthOverLimit\"}") == 1)
      #expect(metrics.metric("longlink_connections{state=\"draining\"}") == 0)
      #expect(metrics.metric("longlink_handshakes_total{outcome=\"failed\"}") == 1)
      #expect(try Self.problems(of: metrics.body) == [])
    }
  }

  @Test func `a writer that has no credit is counted`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      let stream = client.stream(OpsStage.endless, [])
      var items = stream.makeAsyncIterator()
      _ = try await items.next()
      // Nothing more is read.
      try await until { (try await stage.metric("longlink_credit_stalls_total") ?? 0) > 0 }
    }
  }

  @Test func `counters never fall while connections come and go`() async throws {
    try await OpsStage.run(server: { $0.loops = 2 }) { stage in
      let coming = Task {
        while !Task.isCancelled {
          let client = try await stage.client()
          _ = try await client.request(OpsStage.echo, [UInt8](repeating: 1, count: 500))
          await client.close(within: .zero)
        }
      }
      var last: [Double] = [0, 0, 0]
      for _ in 0..<100 {
        let metrics = try await stage.request("/metrics")
        let now = [
          metrics.metric("longlink_bytes_total{direction=\"in\"}"),
          metrics.metric("longlink_frames_total{direction=\"in\",kind=\"request\"}"),
          metrics.metric("longlink_connections_ended_total{reason=\"peer\"}"),
        ].map { $0 ?? 0 }
        for (before, after) in zip(last, now) { #expect(after >= before) }
        last = now
      }
      coming.cancel()
      _ = await coming.result
      #expect(last[1] > 0)
    }
  }

  /// What is wrong with a text in Prometheus' format, version 0.0.4.
  private static func problems(of text: String) throws -> [String] {
    var problems: [String] = []
    var (types, open, seen, done) = ([String: String](), "", Set<String>(), Set<String>())
    if !text.hasSuffix("\n") { problems.append("the last line has no end") }
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if let help = line.firstMatch(of: /^# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)$/) {
        let name = String(help.2)
        if name != open, !done.insert(name).inserted { problems.append("twice: \(name)") }
        open = name
        if help.1 == "TYPE" { types[name] = String(help.3) }
        continue
      }
      // A name, perhaps labels with escaped values, and a number.
      let form =
        /^([a-z_:][a-z0-9_:]*)(\{([a-z_][a-z0-9_]*="([^"\\\n]|\\["\\n])*",?)+\})? [0-9.e+-]+$/
      guard let sample = line.wholeMatch(of: form) else {
        problems.append("no sample: \(line)")
        continue
      }
      let series = String(line[..<(line.lastIndex(of: " ") ?? line.endIndex)])
      if !seen.insert(series).inserted { problems.append("twice: \(series)") }
      let name = String(sample.output.1)
      let family =
        types[open] == "histogram"
        ? ["_bucket", "_sum", "_count"].map { open + $0 } : [open]
      if !family.contains(name) { problems.append("out of place: \(line)") }
      if types[open] == "counter", !name.hasSuffix("_total") {
        problems.append("no total: \(name)")
      }
    }
    return problems
  }
}
#endif
