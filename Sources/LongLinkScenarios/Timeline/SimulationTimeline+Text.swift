// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension SimulationTimeline {
  private static let laneWidth = 13

  /// Draws the timeline as text: for each event a line with its time in seconds, the lanes and a
  /// description.
  package func text() -> String {
    var lines = [header]
    for item in items {
      let (drawing, words) = draw(item)
      lines.append("\(Self.seconds(item.time)) \(drawing) \(words)")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private var header: String {
    let names = lanes.map { name in
      let short = String(name.prefix(Self.laneWidth - 1))
      let left = (Self.laneWidth - short.count) / 2
      return Self.spaces(left) + short + Self.spaces(Self.laneWidth - short.count - left)
    }
    return Self.spaces(11) + " " + names.joined()
  }

  private func draw(_ item: Item) -> (String, String) {
    var cells = [Character](repeating: " ", count: lanes.count * Self.laneWidth)
    for lane in lanes.indices { cells[Self.middle(lane)] = "│" }
    switch item.event {
    case .frame(let from, let to, let link, let label, let arrival):
      let start = Self.middle(from)
      let end = to.map(Self.middle) ?? min(start + Self.laneWidth / 2, cells.count - 1)
      for column in min(start, end)...max(start, end) {
        cells[column] = cells[column] == " " ? "─" : "┼"
      }
      cells[start] = "●"
      cells[end] = arrival == nil ? "✕" : start < end ? "▶" : "◀"
      let end2 = arrival.map { "arrives \(Self.seconds($0).trimmed)" } ?? "never arrives"
      return (String(cells), "\(label)  (link \(link), \(end2))")
    case .mark(let lane, let kind, let text):
      let sign: Character =
        switch kind {
        case .fault: "✱"
        case .socket: "○"
        case .state: "◆"
        }
      if let lane {
        cells[Self.middle(lane)] = sign
      } else {
        for lane in lanes.indices { cells[Self.middle(lane)] = sign }
      }
      return (String(cells), kind == .fault ? "*** \(text)" : text)
    }
  }

  private static func middle(_ lane: Int) -> Int { lane * laneWidth + laneWidth / 2 }

  /// Seconds with six decimal places, eleven columns wide.
  static func seconds(_ time: LinkInstant) -> String {
    let micros = time.nanoseconds / 1_000
    let whole = String(micros / 1_000_000)
    let part = String(micros % 1_000_000)
    let text = whole + "." + String(repeating: "0", count: 6 - part.count) + part
    return spaces(max(0, 11 - text.count)) + text
  }

  private static func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}

extension String {
  fileprivate var trimmed: Substring { drop { $0 == " " } }
}
