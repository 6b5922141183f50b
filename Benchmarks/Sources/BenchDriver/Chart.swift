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
          parts.append(bar(row.subject, Chart.speed(row), at: y))
          y += Chart.barHeight + 4
        }
        y += 10
      }
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Chart.width) \(y)" \
      font-family="sans-serif" font-size="12">
      <rect width="100%" height="100%" fill="white"/>
      \(text(0, 16, "\(title). The scale is logarithmic; the line is from the least to the most."))
      \(parts.joined(separator: "\n"))
      </svg>

      """
  }

  /// By the floor's, so that more is better.
  private static func speed(_ summary: Summary) -> Summary.Spread {
    guard summary.work.shape == .single else { return summary.rateRatio }
    let time = summary.timeRatio
    return Summary.Spread([1 / time.most, 1 / time.median, 1 / time.least])
  }

  /// From a thousandth of the floor's to twice as much.
  private static func length(_ value: Double) -> Double {
    let share = log10(max(value, least) / least) / log10(2 / least)
    return min(share, 1) * (width - labelWidth - 70)
  }

  private func bar(_ name: String, _ value: Summary.Spread, at y: Double) -> String {
    let length = Chart.length(value.median)
    let colour =
      name.hasPrefix("longlink") ? "#c2410c" : name.hasPrefix("floor") ? "#475569" : "#94a3b8"
    let number = String(format: value.median < 0.1 ? "%.3f" : "%.2f", value.median)
    let (from, to) = (Chart.length(value.least), Chart.length(value.most))
    let middle = y + Chart.barHeight / 2
    return """
      \(text(0, y + 12, name))
      <rect x="\(Chart.labelWidth)" y="\(y)" width="\(length)" height="\(Chart.barHeight)" \
      fill="\(colour)"/>
      <path d="M\(Chart.labelWidth + from) \(middle)H\(Chart.labelWidth + to)" stroke="#111827"/>
      \(text(Chart.labelWidth + max(length, to) + 6, y + 12, number))
      """
  }

  private func text(_ x: Double, _ y: Double, _ text: String, isBold: Bool = false) -> String {
    let escaped = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    let weight = isBold ? " font-weight=\"bold\"" : ""
    return "<text x=\"\(x + 8)\" y=\"\(y)\"\(weight)>\(escaped)</text>"
  }
}
