// SPDX-License-Identifier: Apache-2.0

#if Operations
/// One metric, as the page of this module describes it.
package struct MetricDescription: Sendable {
  /// What `swift-metrics` calls the metric's kind.
  package enum Kind: String, Sendable {
    case counter, meter, timer
  }

  package let name: String
  package let kind: Kind
  /// The unit; empty for a plain number.
  package let unit: String
  /// The names of its labels, besides `longlink.role` of all but the timers.
  package let labels: [String]
  /// What it measures, for people.
  package let text: String

  private init(
    _ name: String, _ kind: Kind, _ unit: String = "", _ labels: [String] = [], _ text: String
  ) {
    self.name = name
    self.kind = kind
    self.unit = unit
    self.labels = labels
    self.text = text
  }

  // MARK: Calls

  static let clientCall = MetricDescription(
    "rpc.client.call.duration", .timer, "s",
    ["rpc.system.name", "rpc.method", "error.type", "longlink.delivery"],
    "from the request to its end for the caller, retries included")
  static let serverCall = MetricDescription(
    "rpc.server.call.duration", .timer, "s", ["rpc.system.name", "rpc.method", "error.type"],
    "from the arrival of a request until its response is decided")
  static let rejections = MetricDescription(
    "longlink.rejections", .counter, "", ["code"],
    "requests of the peer that were refused before their handler ran")

  // MARK: Connections

  static let connections = MetricDescription(
    "longlink.connections", .meter, "", ["state"],
    "connections now: `handshake` until the welcome, then `open`; short links are not counted")
  static let handshakes = MetricDescription(
    "longlink.handshakes", .counter, "", ["outcome"],
    "connections that opened (`accepted`), were turned away (`refused`) or ended before (`failed`)")
  static let ended = MetricDescription(
    "longlink.connections.ended", .counter, "", ["reason"],
    "connections that ended, opened or not, by the `token` of the reason")
  static let violations = MetricDescription(
    "longlink.violations", .counter, "", ["name"],
    "connections that ended because the peer broke this rule of the protocol")

  // MARK: Counters

  static let bytes = MetricDescription(
    "longlink.bytes", .counter, "By", ["direction"], "bytes read (`in`) and written (`out`)")
  static let frames = MetricDescription(
    "longlink.frames", .counter, "", ["direction", "kind"],
    "requests, responses, items, pushes, pings and cancels")
  static let heartbeats = MetricDescription(
    "longlink.heartbeats.missed", .counter, "", [],
    "times that the peer was suspected to be dead, and got a ping")
  static let stalls = MetricDescription(
    "longlink.credit_stalls", .counter, "", [],
    "times that an item of this side had to wait for credit of the peer")
  static let turns = MetricDescription(
    "longlink.turns_too_long", .counter, "", [],
    "turns of a server's own loops that work blocked for longer than 200 ms")
  static let drops = MetricDescription(
    "longlink.drops", .counter, "", ["name"], "what was dropped, by the name of its counter")
  static let retries = MetricDescription(
    "longlink.retries", .counter, "", ["delivery"],
    "retries of requests, by what was known of the attempt before")
  static let requests = MetricDescription(
    "longlink.requests", .meter, "", ["state"],
    "requests now: of a client those that are `open`, and those of them that are `waiting`; of a "
      + "server those that are `running`")
  static let queued = MetricDescription(
    "longlink.queued", .meter, "By", ["kind"],
    "bytes that wait: `output` to be written, and a client's `requests` for a connection or room")
  static let pushes = MetricDescription(
    "longlink.pushes.waiting", .meter, "", [], "pushes that wait for room on their connections")
  static let memory = MetricDescription(
    "longlink.memory", .meter, "By", [],
    "bytes that a server holds for all connections, as `limits.memoryLimit` counts them")
  static let turnedAway = MetricDescription(
    "longlink.connections.turned_away", .counter, "", ["setting"],
    "connections that a server rejected before their first frame, by the setting that did")
  static let reconnects = MetricDescription(
    "longlink.reconnects", .counter, "", [], "connections of a client after its first one")
  static let attempts = MetricDescription(
    "longlink.connects.failed", .counter, "", [], "a client's attempts to connect that failed")
  static let failovers = MetricDescription(
    "longlink.failovers", .counter, "", [], "connections of a client to another server")
  static let once = MetricDescription(
    "longlink.once.requests", .counter, "", ["outcome"],
    "requests that are to run once, by what became of them on a server")

  /// All of them, in the order of the page.
  package static let all = [
    clientCall, serverCall, rejections, connections, handshakes, ended, violations, turnedAway,
    reconnects, attempts, failovers, bytes, frames, heartbeats, stalls, turns, drops, retries,
    requests, queued, pushes, memory, once,
  ]
}
#endif
