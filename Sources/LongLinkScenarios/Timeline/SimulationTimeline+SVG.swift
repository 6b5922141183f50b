// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension SimulationTimeline {
  private enum Measure {
    static let left = 90
    static let lane = 150
    static let top = 50
    static let row = 14
    /// The width of a letter in a font of 10 pixels: 6, and a little more in some fonts.
    static let letter = 6.3
  }

  /// Draws the timeline as an SVG document. Time runs down, not to scale. The line of a frame goes
  /// from the time when it was sent to the time when it had arrived completely.
  ///
  /// At most `limit` events are drawn; the last line states the number of omitted events.
  package func svg(limit: Int = 1_000) -> String {
    let (shown, omitted) = prefix(limit)
    let rows = Rows(shown.items.map(\.time))
    let textX = Measure.left + lanes.count * Measure.lane
    let longest = shown.items.map { $0.words.count }.max() ?? 0
    let width = textX + max(200, Int(Double(longest) * Measure.letter)) + 10
    let height = Measure.top + (rows.times.count + 2) * Measure.row
    var svg = """
      <?xml version="1.0" encoding="UTF-8"?>
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" \
      viewBox="0 0 \(width) \(height)" font-family="monospace" font-size="10">
      <rect width="\(width)" height="\(height)" fill="white"/>

      """
    for (lane, name) in lanes.enumerated() {
      let x = Self.x(lane)
      svg += """
        <text x="\(x)" y="25" text-anchor="middle" font-size="13" font-weight="bold">\
        \(Self.escaped(name))</text>
        <line x1="\(x)" y1="\(Measure.top - 15)" x2="\(x)" y2="\(height)" stroke="#bbb"/>

        """
    }
    for (index, item) in shown.items.enumerated() {
      svg += shown.draw(item, y: Measure.top + index * Measure.row, textX: textX, rows)
    }
    if omitted > 0 {
      svg += """
        <text x="10" y="\(height - 8)">\
        \(omitted.of("more event")) left out: draw a shorter time</text>

        """
    }
    return svg + "</svg>\n"
  }

  /// The vertical positions of times: each event has a row, and times between two events are
  /// interpolated between their rows.
  private struct Rows {
    let times: [LinkInstant]

    init(_ times: [LinkInstant]) { self.times = times }

    /// The vertical position of a time.
    func height(of time: LinkInstant) -> Int {
      var (low, high) = (0, times.count)
      while low < high {
        let middle = (low + high) / 2
        if times[middle] < time { low = middle + 1 } else { high = middle }
      }
      let row = Measure.top + low * Measure.row
      guard low > 0, low < times.count else { return row }
      let (before, after) = (times[low - 1], times[low])
      return row - Int(Double(Measure.row) * Double(after - time) / Double(after - before))
    }
  }

  private func draw(_ item: Item, y: Int, textX: Int, _ rows: Rows) -> String {
    let time = """
      <text x="\(Measure.left - 10)" y="\(y + 3)" text-anchor="end" fill="#555">\
      \(Self.seconds(item.time))</text>

      """
    switch item.event {
    case .frame(let from, let to, _, _, let arrival):
      return time
        + drawFrame(from, to, y, arrival.map { max(y + 4, rows.height(of: $0)) })
        + Self.words(textX, y, item.words, arrival == nil ? "#c00" : "#06c")
    case .mark(let lane, let kind, _):
      let colour =
        switch kind {
        case .fault: "#c00"
        case .socket: "#777"
        case .state: "#080"
        }
      let marked = lane.map { [$0] } ?? Array(lanes.indices)
      let signs = marked.map {
        "<circle cx=\"\(Self.x($0))\" cy=\"\(y)\" r=\"4\" fill=\"\(colour)\"/>\n"
      }
      return time + signs.joined() + Self.words(textX, y, item.words, colour)
    }
  }

  private func drawFrame(_ from: Int, _ to: Int?, _ y: Int, _ end: Int?) -> String {
    let start = Self.x(from)
    guard let to, let end else {
      let stop = start + Measure.lane / 3
      return """
        <path d="M\(start) \(y)H\(stop)m-3 -3l6 6m0 -6l-6 6" stroke="#c00" fill="none"/>

        """
    }
    let stop = Self.x(to)
    let back = start < stop ? -6 : 6
    return """
      <path d="M\(start) \(y)L\(stop) \(end)" stroke="#06c" fill="none"/>
      <path d="M\(stop) \(end)l\(back) -3v6z" fill="#06c"/>

      """
  }

  private static func words(_ x: Int, _ y: Int, _ text: String, _ colour: String) -> String {
    "<text x=\"\(x)\" y=\"\(y + 3)\" fill=\"\(colour)\">\(escaped(text))</text>\n"
  }

  private static func x(_ lane: Int) -> Int {
    Measure.left + lane * Measure.lane + Measure.lane / 2
  }

  /// The text with XML's special characters escaped, and invalid ones replaced.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "&": result += "&amp;"
      case "\"": result += "&quot;"
      case "\n", "\t": result += " "
      case _ where scalar.value < 0x20: result += "?"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension SimulationTimeline.Item {
  /// The text beside the item.
  fileprivate var words: String {
    switch event {
    case .frame(_, _, let link, let label, _): "link \(link)  \(label)"
    case .mark(_, _, let text): text
    }
  }
}
