import Foundation

/// Bars of the ratios to the floor, as an SVG picture.
package struct Chart {
  private let summaries: [Summary]
  private let title: String

  package init(_ summaries: [Summary], title: String) {
    self.summaries = summaries
    self.title = title
  }

  private static let width = 860.0
  private static let labelWidth = 190.0
  private static let barHeight = 16.0
  private static let least = 0.001

  /// The picture's text.
  package var svg: String {
    var y = 34.0
    var parts: [String] = []
    for placement in Placement.allCases {
      for shape in Work.Shape.allCases {
        let rows = summaries.filter {
          $0.placement == placement && $0.work.shape == shape && $0.work.body == 64
        }
        guard !rows.isEmpty else { continue }
        let place = placement == .free ? "own CPUs" : "one CPU"
        let what = shape == .single ? "floor's p50 ÷ p50" : "requests/s ÷ floor's"
        parts.append(text(0, y + 12, "\(rows[0].work.name), \(place): \(what)", isBold: true))
        y += 22
        for row in rows {
          let value =
            shape == .single ? 1 / row.timeRatio.median : row.rateRatio.median
          parts.append(bar(row.subject, value, at: y))
          y += Chart.barHeight + 4
        }
        y += 10
      }
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Chart.width) \(y)" \
      font-family="sans-serif" font-size="12">
      <rect width="100%" height="100%" fill="white"/>
      \(text(0, 16, title, isBold: true))
      \(parts.joined(separator: "\n"))
      </svg>

      """
  }

  /// The scale is logarithmic: from a thousandth of the floor to twice its value.
  private func bar(_ name: String, _ value: Double, at y: Double) -> String {
    let span = log10(2 / Chart.least)
    let share = max(log10(max(value, Chart.least) / Chart.least) / span, 0)
    let length = min(share, 1) * (Chart.width - Chart.labelWidth - 70)
    let colour =
      name.hasPrefix("longlink") ? "#c2410c" : name.hasPrefix("floor") ? "#475569" : "#94a3b8"
    let number = String(format: value < 0.1 ? "%.3f" : "%.2f", value)
    return """
      \(text(0, y + 12, name))
      <rect x="\(Chart.labelWidth)" y="\(y)" width="\(length)" height="\(Chart.barHeight)" \
      fill="\(colour)"/>
      \(text(Chart.labelWidth + length + 6, y + 12, number))
      """
  }

  private func text(_ x: Double, _ y: Double, _ text: String, isBold: Bool = false) -> String {
    let escaped = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    let weight = isBold ? " font-weight=\"bold\"" : ""
    return "<text x=\"\(x + 8)\" y=\"\(y)\"\(weight)>\(escaped)</text>"
  }
}
