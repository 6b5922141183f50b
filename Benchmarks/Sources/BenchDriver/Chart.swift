// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The ratios to the floor with bodies of 64 bytes, as an SVG picture: dots on logarithmic axes.
///
/// Subjects that spin are omitted, because they cannot be compared with a floor that sleeps.
package struct Chart {
  private let summaries: [Summary]
  private let title: String

  package init(_ summaries: [Summary], title: String) {
    self.summaries = summaries.filter { $0.work.body == 64 && !$0.subject.hasSuffix("spinning") }
    self.title = title
  }

  private static let panelWidth = 460.0
  private static let labelWidth = 158.0
  private static let plotWidth = 238.0
  private static let rowHeight = 18.0
  private static let legend = """
    A dot is the median of all rounds, its line goes from the least to the most, and an arrow \
    points beyond the axis.
    """

  /// The picture as text: a column of panels for each placement.
  package var svg: String {
    var (y, parts) = (46.0, [String]())
    for shape in [Work.Shape.single, .many, .wide] {
      let panels = Placement.allCases.map { placement in
        summaries.filter { $0.work.shape == shape && $0.placement == placement }
      }
      for (column, rows) in panels.enumerated() where !rows.isEmpty {
        parts += panel(rows, Axis(shape), x: Double(column) * Chart.panelWidth, y: y)
      }
      let most = panels.map(\.count).max() ?? 0
      if most > 0 { y += 74 + Double(most) * Chart.rowHeight }
    }
    let width = Chart.panelWidth * Double(Placement.allCases.count)
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(width)) \(Int(y))" \
      font-family="sans-serif" font-size="12">
      <rect width="100%" height="100%" fill="white"/>
      \(text(8, 18, "\(title): ratios to the floor, on logarithmic axes", weight: "bold"))
      \(text(8, 34, Chart.legend))
      \(parts.joined(separator: "\n"))
      </svg>

      """
  }

  private func panel(_ rows: [Summary], _ axis: Axis, x: Double, y: Double) -> [String] {
    let place = rows[0].placement == .free ? "own CPUs" : "one CPU"
    let left = x + Chart.labelWidth
    let (top, bottom) = (y + 34, y + 38 + Double(rows.count) * Chart.rowHeight)
    var parts = [
      text(x + 8, y + 14, "\(rows[0].work.name), \(place)", weight: "bold"),
      text(x + 8, y + 29, axis.title),
    ]
    for mark in axis.marks {
      let place = left + axis.position(mark) * Chart.plotWidth
      let colour = mark == 1 ? "#475569" : "#e2e8f0"
      parts.append(
        "<path d=\"M\(number(place)) \(number(top))V\(number(bottom))\" stroke=\"\(colour)\"/>")
      parts.append(
        text(place, bottom + 14, String(format: "%g", mark), anchor: "middle", colour: "#475569"))
    }
    for (index, row) in rows.enumerated() {
      let middle = top + 13 + Double(index) * Chart.rowHeight
      parts += dot(row.subject, axis.spread(of: row), axis, x: x, y: middle)
    }
    return parts
  }

  private func dot(
    _ name: String, _ spread: Summary.Spread, _ axis: Axis, x: Double, y: Double
  ) -> [String] {
    let left = x + Chart.labelWidth
    func place(_ value: Double) -> Double { left + axis.position(value) * Chart.plotWidth }
    let colour =
      name.hasPrefix("longlink") ? "#c2410c" : name.hasPrefix("floor") ? "#1e293b" : "#64748b"
    let (from, to) = (place(spread.least), place(spread.most))
    var parts = [
      text(x + 8, y + 4, name),
      "<path d=\"M\(number(from)) \(number(y))H\(number(to))\" stroke=\"\(colour)\" "
        + "stroke-width=\"2\" stroke-opacity=\"0.45\"/>",
    ]
    // An arrow at each end that the axis cuts off.
    for (value, end, sign) in [(spread.least, from, -1.0), (spread.most, to, 1.0)]
    where !axis.range.contains(value) {
      parts.append(
        "<path d=\"M\(number(end + sign * 7)) \(number(y))l\(number(-sign * 8)) -4v8z\" "
          + "fill=\"\(colour)\" fill-opacity=\"0.6\"/>")
    }
    if axis.range.contains(spread.median) {
      parts.append(
        "<circle cx=\"\(number(place(spread.median)))\" cy=\"\(number(y))\" r=\"4\" "
          + "fill=\"\(colour)\"/>")
    }
    let figure = String(format: spread.median < 0.1 ? "%.3f" : "%.2f", spread.median)
    let end = left + Chart.plotWidth + 46
    return parts + [text(end, y + 4, figure, anchor: "end", colour: colour, weight: "bold")]
  }

  /// The quantity and the scale of a panel.
  private struct Axis {
    let title: String
    let range: ClosedRange<Double>
    let marks: [Double]
    let spread: (Summary) -> Summary.Spread

    init(_ shape: Work.Shape) {
      if shape == .single {
        title = "p50 ÷ the floor's: less is better"
        range = 0.5...8
        marks = [0.5, 1, 2, 4, 8]
        spread = \.timeRatio
      } else {
        title = "requests/s ÷ the floor's: more is better"
        range = 0.01...2
        marks = [0.01, 0.03, 0.1, 0.3, 1, 2]
        spread = \.rateRatio
      }
    }

    func spread(of summary: Summary) -> Summary.Spread { spread(summary) }

    /// From 0 at the beginning of the axis to 1 at its end.
    func position(_ value: Double) -> Double {
      let inside = min(max(value, range.lowerBound), range.upperBound)
      return log(inside / range.lowerBound) / log(range.upperBound / range.lowerBound)
    }
  }

  private func number(_ value: Double) -> String { String(format: "%.1f", value) }

  private func text(
    _ x: Double, _ y: Double, _ text: String, anchor: String = "start", colour: String = "black",
    weight: String = "normal"
  ) -> String {
    let escaped = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    return "<text x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor)\" "
      + "fill=\"\(colour)\" font-weight=\"\(weight)\">\(escaped)</text>"
  }
}
