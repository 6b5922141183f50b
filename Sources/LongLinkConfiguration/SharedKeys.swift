// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Configuration
internal import Logging
internal import LongLink
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer

/// A configuration that keys set.
protocol Configurable: Sendable {
  /// All keys, in the order in which they are set.
  static var keys: [ConfigurationKey<Self>] { get }
  var logger: Logger { get set }
  var changesLogLevel: Bool { get set }
  var name: String { get set }
  var recorderBytes: Int { get set }
  var recordsBodies: Bool { get set }
  var heartbeat: Heartbeat { get set }
  var waterMarks: WaterMarks { get set }
  var streamWindows: StreamWindows { get set }
  func validate() throws(LongLinkError)
}

extension ServerConfiguration: Configurable {
  var waterMarks: WaterMarks {
    get { limits.waterMarks }
    set { limits.waterMarks = newValue }
  }
  var streamWindows: StreamWindows {
    get { limits.streamWindows }
    set { limits.streamWindows = newValue }
  }
}

extension ClientConfiguration: Configurable {
  var waterMarks: WaterMarks {
    get { limits.waterMarks }
    set { limits.waterMarks = newValue }
  }
  var streamWindows: StreamWindows {
    get { limits.streamWindows }
    set { limits.streamWindows = newValue }
  }
}

// The keys that clients and servers have in common.
extension ConfigurationKey where Target: Configurable {
  /// The level of the logger.
  static var logLevel: Self {
    let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
    return text("logLevel", "one of \(levels)", text: { "\($0.logger.logLevel)" }) {
      target, value in
      guard let level = Logger.Level(rawValue: value) else { return "is no level" }
      target.logger.logLevel = level
      return nil
    }.live
  }

  /// The flight recorder.
  static var recorder: [Self] {
    [
      .integer("recorderBytes", \.recorderBytes, from: 0, to: 1_073_741_824, unit: "bytes"),
      .flag("recordsBodies", \.recordsBodies),
    ]
  }

  static var name: Self {
    text("name", "at most 1,024 bytes", text: { $0.name.isEmpty ? "none" : $0.name }) {
      target, value in
      target.name = value
      return nil
    }
  }

  static var heartbeat: [Self] {
    [
      .seconds("heartbeat.interval", \.heartbeat.interval, .between(0.2, 4_000_000)),
      .seconds("heartbeat.timeout", \.heartbeat.timeout, .between(0.1, 4_000_000)),
      .integer("heartbeat.missedDeadlines", \.heartbeat.missedDeadlines, from: 0),
    ]
  }

  static var waterMarks: [Self] {
    [
      .integer("limits.waterMarks.high", \.waterMarks.high, from: 1, unit: "bytes"),
      .integer("limits.waterMarks.low", \.waterMarks.low, from: 0, unit: "bytes"),
      .integer("limits.waterMarks.large", \.waterMarks.large, from: 1, unit: "bytes"),
    ]
  }

  static var streamWindows: [Self] {
    [
      .integer("limits.streamWindows.first", \.streamWindows.first, from: 1_024, unit: "bytes"),
      .integer(
        "limits.streamWindows.largest", \.streamWindows.largest, from: 1_024, to: 2_147_483_647,
        unit: "bytes"),
      .integer("limits.streamWindows.total", \.streamWindows.total, from: 1_024, unit: "bytes"),
    ]
  }
}

extension Endpoint {
  /// The form of an endpoint in the table.
  static let form = "`host:port`, `[IPv6]:port` or `unix:path`"

  /// Reads `host:port`, with an IPv6 address in brackets, or `unix:path`; nil for anything else.
  /// The port may be 0.
  init?(configured text: String) {
    if text.hasPrefix("unix:") {
      self = .unix(path: String(text.dropFirst(5)))
    } else if let endpoint = Endpoint(alternative: text) {
      self = endpoint
    } else if text.hasSuffix(":0"), let other = Endpoint(alternative: "\(text.dropLast())1"),
      let host = other.host
    {
      self = .host(host, port: 0)
    } else {
      return nil
    }
  }
}
#endif
