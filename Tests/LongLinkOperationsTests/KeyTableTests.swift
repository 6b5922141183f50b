// SPDX-License-Identifier: Apache-2.0

#if Operations
import Configuration
import Foundation
import LongLink
@testable import LongLinkConfiguration
import LongLinkDriver
import LongLinkServer
import Testing

/// The table of keys, the page that shows it, and the configurations.
@Suite struct KeyTableTests {
  private static let page = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(
      path: "Sources/LongLinkConfiguration/LongLinkConfiguration.docc/ConfigurationKeys.md")

  private static func rows<Target: Configurable>(_ standard: Target) -> [String] {
    Target.keys.map { key in
      let what = [key.kind.name, key.range].filter { !$0.isEmpty }.joined(separator: ", ")
      let effect = key.isLive ? "at once" : "after a restart"
      return "| `\(key.name)` | \(what) | \(key.unit) | \(key.text(standard)) | \(effect) |"
    }
  }

  /// The rows of a section of the page.
  private static func rows(of section: String) throws -> [String] {
    let lines = try String(contentsOf: page, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return lines.drop { $0 != "### \(section)" }.dropFirst().prefix { !$0.hasPrefix("### ") }
      .filter { $0.hasPrefix("| `") }.map(String.init)
  }

  @Test func `the page has each key with its form, unit, default and effect`() throws {
    let server = Self.rows(ServerConfiguration(listen: []))
    let client = Self.rows(ClientConfiguration(servers: [ServerEntry]()))
    let isServer = try Self.rows(of: "Keys of a server") == server
    let isClient = try Self.rows(of: "Keys of a client") == client
    #expect(isServer, "the page should have:\n\(server.joined(separator: "\n"))")
    #expect(isClient, "the page should have:\n\(client.joined(separator: "\n"))")
  }

  /// Options that are code, or not the client's or server's own, and so have no key.
  private static let code: Set = [
    "dialect", "security", "identity.authenticate", "ways", "prepare", "interceptors", "logger",
    "identity.client",
  ]

  /// The names of the fields of a configuration that are of groups or of values.
  private static func fields(of value: Any, _ path: String = "") -> [String] {
    Mirror(reflecting: value).children.flatMap { child -> [String] in
      let name = path + (child.label ?? "")
      let text = "\(type(of: child.value))"
      let isGroup = [
        "Identity", "Limits", "Addresses", "Timeouts", "Drain", "Heartbeat", "RetryPolicy",
        "ReconnectPolicy", "WaterMarks", "StreamWindows",
      ].contains(text)
      return isGroup ? fields(of: child.value, "\(name).") : [name]
    }
  }

  @Test func `each option that is data has a key`() {
    let hidden: Set = [
      "configuredLogger", "changesLogLevel", "observers", "onceProvider", "adaptiveHeartbeat",
      "reconnect.errorRatio",
    ]
    func check<Target: Configurable>(_ standard: Target) {
      let keys = Set(Target.keys.map(\.name))
      let options = Set(Self.fields(of: standard))
      #expect(options.count > 30)
      #expect(options.subtracting(keys).subtracting(Self.code).subtracting(hidden) == [])
      #expect(keys.count == Target.keys.count)
    }
    check(ServerConfiguration(listen: []))
    check(ClientConfiguration(servers: [ServerEntry]()))
  }

  /// The numbers in a range such as `1 to 1,000,000; 0 for no limit`.
  private static func bounds(_ range: String) -> (least: Double, most: Double?)? {
    let words = range.replacing(",", with: "").replacing(";", with: "").split(separator: " ")
    guard let first = words.first, let least = Double(first) else { return nil }
    return (least, words.count > 2 && words[1] == "to" ? Double(words[2]) : nil)
  }

  /// Whether a configuration accepts a value of one field.
  private static func isValid<Target: Configurable>(_ target: Target, _ name: String) -> Bool {
    do throws(LongLinkError) {
      try target.validate()
      return true
    } catch {
      return error.field != name
    }
  }

  @Test func `the ranges of numbers are those of the configurations`() throws {
    func check<Target: Configurable>(_ standard: Target) {
      var count = 0
      for key in Target.keys where key.kind == .integer || key.kind == .number {
        guard let (least, most) = Self.bounds(key.range) else {
          #expect(key.range.hasPrefix("above 0"), "\(key.name): \(key.range)")
          continue
        }
        count += 1
        func content(_ value: Double) -> ConfigContent {
          key.kind == .integer ? .int(Int(value)) : .double(value)
        }
        let isLimit = key.range.hasSuffix("0 for no limit")
        var target = standard
        for value in [least, most].compactMap({ $0 }) {
          #expect(key.set(&target, content(value)) == nil, "\(key.name): \(value)")
        }
        let step = key.kind == .integer ? 1 : 0.01
        for value in [least - step, most.map { $0 + step }].compactMap({ $0 }) {
          if isLimit, value == 0 { continue }
          #expect(key.set(&target, content(value)) != nil, "\(key.name): \(value)")
        }
      }
      #expect(count > 15)
    }
    check(ServerConfiguration(listen: [.host("127.0.0.1", port: 0)]))
    check(ClientConfiguration(servers: [.host("a", port: 1)]))
  }

  @Test func `the least of a number is that of the configuration`() throws {
    func check<Target: Configurable>(_ standard: Target) {
      for key in Target.keys where key.kind == .integer || key.kind == .number {
        guard let (least, _) = Self.bounds(key.range) else { continue }
        var target = standard
        let isSet = key.set(&target, key.kind == .integer ? .int(Int(least)) : .double(least))
        guard isSet == nil else { continue }
        // A bound by another field is found when all values are there, and is not in the table.
        let isBound = Self.dependent.contains(key.name)
        #expect(isBound || Self.isValid(target, key.name), "\(key.name): \(least)")
      }
    }
    check(ServerConfiguration(listen: [.host("127.0.0.1", port: 0)]))
    check(ClientConfiguration(servers: [.host("a", port: 1)]))
  }

  /// Keys whose value is also bound by that of another one.
  private static let dependent: Set = [
    "limits.maxRequestBytes", "limits.memoryLimit", "limits.maxUnreadOutput",
    "limits.waterMarks.high", "limits.streamWindows.largest", "limits.streamWindows.total",
    "reconnect.errorRatio.minimumRequests", "reconnect.errorRatio.window",
  ]
}
#endif
