// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// Attempts per second over time, on a logarithmic scale, as SVG 1.1.
struct StormPlot {
  let options: StormOptions
  let results: [StormResult]

  private static let width = 960.0
  private static let height = 520.0
  private static let left = 80.0
  private static let right = 20.0
  private static let top = 50.0
  private static let bottom = 120.0
  private static let colours = ["#0b7a3b", "#c0392b", "#d68910", "#2e6da4"]

  private var seconds: Int { max(results.map(\.curve.attempts.count).max() ?? 1, 1) }
  private var decades: Int {
    let peak = max(results.map(\.curve.peakAttempts).max() ?? 1, Int(options.evenRate), 10)
    return Int(log10(Double(peak)).rounded(.up))
  }

  private func x(_ second: Double) -> Double {
    let room = StormPlot.width - StormPlot.left - StormPlot.right
    return StormPlot.left + room * second / Double(seconds)
  }

  /// The lowest line is one attempt per second, because a logarithm cannot show zero; zero is
  /// drawn there too.
  private func y(_ rate: Double) -> Double {
    let room = StormPlot.height - StormPlot.top - StormPlot.bottom
    return StormPlot.height - StormPlot.bottom - room * log10(max(rate, 1)) / Double(decades)
  }

  var svg: String {
    let size = "width=\"\(Int(StormPlot.width))\" height=\"\(Int(StormPlot.height))\""
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" \(size) "
        + "viewBox=\"0 0 \(Int(StormPlot.width)) \(Int(StormPlot.height))\" "
        + "font-family=\"sans-serif\" font-size=\"13\">",
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
      text(
        "\(options.clients.grouped) clients come back after an outage of "
          + options.outage.inSeconds,
        x: StormPlot.width / 2, y: 28, anchor: "middle", size: 17),
    ]
    lines += outage + axes + evenRate
    for (index, result) in results.enumerated() {
      lines.append(curve(result.curve, colour: StormPlot.colours[index]))
    }
    lines += legend
    return (lines + ["</svg>", ""]).joined(separator: "\n")
  }

  private var outage: [String] {
    let end = x(options.outage / .seconds(1))
    guard end > StormPlot.left else { return [] }
    let floor = StormPlot.height - StormPlot.bottom
    return [
      "<rect x=\"\(number(StormPlot.left))\" y=\"\(number(StormPlot.top))\" "
        + "width=\"\(number(end - StormPlot.left))\" height=\"\(number(floor - StormPlot.top))\" "
        + "fill=\"#eeeeee\"/>",
      text("the server is down", x: StormPlot.left + 6, y: StormPlot.top + 16),
    ]
  }

  private var axes: [String] {
    let floor = StormPlot.height - StormPlot.bottom
    var lines = [
      line(StormPlot.left, floor, StormPlot.width - StormPlot.right, floor, "#000000"),
      line(StormPlot.left, StormPlot.top, StormPlot.left, floor, "#000000"),
    ]
    for decade in 0...decades {
      let rate = pow(10, Double(decade))
      if decade > 0 {
        lines.append(
          line(StormPlot.left, y(rate), StormPlot.width - StormPlot.right, y(rate), "#dddddd"))
      }
      lines.append(text(Int(rate).grouped, x: StormPlot.left - 8, y: y(rate) + 4, anchor: "end"))
    }
    for second in stride(from: 0, through: seconds, by: StormPlot.step(for: seconds)) {
      let position = x(Double(second))
      lines.append(line(position, floor, position, floor + 5, "#000000"))
      lines.append(text("\(second)", x: position, y: floor + 20, anchor: "middle"))
    }
    let middle = (StormPlot.left + StormPlot.width - StormPlot.right) / 2
    lines.append(
      text("seconds since the connections were lost", x: middle, y: floor + 42, anchor: "middle"))
    let height = (StormPlot.top + floor) / 2
    lines.append(
      "<text x=\"20\" y=\"\(number(height))\" text-anchor=\"middle\" "
        + "transform=\"rotate(-90 20 \(number(height)))\">attempts per second</text>")
    return lines
  }

  /// A step of 1, 2 or 5 times a power of ten that makes at most twelve marks.
  static func step(for seconds: Int) -> Int {
    var power = 1
    while true {
      for factor in [1, 2, 5] where seconds / (factor * power) <= 12 { return factor * power }
      power *= 10
    }
  }

  private var evenRate: [String] {
    let height = y(options.evenRate)
    return [
      "<line x1=\"\(number(StormPlot.left))\" y1=\"\(number(height))\" "
        + "x2=\"\(number(StormPlot.width - StormPlot.right))\" y2=\"\(number(height))\" "
        + "stroke=\"#555555\" stroke-dasharray=\"6 4\"/>",
      text("even rate", x: StormPlot.width - StormPlot.right, y: height - 5, anchor: "end"),
    ]
  }

  private func curve(_ curve: StormCurve, colour: String) -> String {
    // Each second is a step; steps of the same height are drawn as one.
    var points = ["\(number(x(0))),\(number(y(0)))"]
    var last: Int?
    for (second, attempts) in curve.attempts.enumerated() where attempts != last {
      let position = number(x(Double(second)))
      if let last { points.append("\(position),\(number(y(Double(last))))") }
      points.append("\(position),\(number(y(Double(attempts))))")
      last = attempts
    }
    let end = number(x(Double(curve.attempts.count)))
    points.append("\(end),\(number(y(Double(last ?? 0))))")
    points.append("\(end),\(number(y(0)))")
    return "<polyline fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.8\" "
      + "points=\"\(points.joined(separator: " "))\"/>"
  }

  private var legend: [String] {
    let columns = 2
    return results.enumerated().flatMap { index, result -> [String] in
      let x = StormPlot.left + Double(index % columns) * 430
      let y = StormPlot.height - 46 + Double(index / columns) * 24
      return [
        line(x, y - 4, x + 28, y - 4, StormPlot.colours[index], width: 3),
        text(
          "\(result.policy.name): at most \(result.curve.peakAttempts.grouped)/s", x: x + 36, y: y),
      ]
    }
  }

  private func line(
    _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ colour: String, width: Int = 1
  ) -> String {
    "<line x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\" "
      + "stroke=\"\(colour)\" stroke-width=\"\(width)\"/>"
  }

  private func text(
    _ text: String, x: Double, y: Double, anchor: String = "start", size: Int = 13
  ) -> String {
    let escaped = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    return "<text x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor)\" "
      + "font-size=\"\(size)\">\(escaped)</text>"
  }

  private func number(_ value: Double) -> String { String(format: "%.1f", value) }
}
