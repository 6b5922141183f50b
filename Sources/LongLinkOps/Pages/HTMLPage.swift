// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore

/// A page for browsers. It has no scripts, loads nothing, and is read on phones too, light or dark.
struct HTMLPage {
  let title: String
  /// After how many seconds the browser loads the page again; nil for never.
  let refresh: Int?
  /// The HTML of the body.
  var body = ""

  init(_ title: String, refresh: Int? = nil) {
    self.title = title
    self.refresh = refresh
  }

  /// The text with escapes for what HTML gives a meaning.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// A table with a row of headings. The cells are HTML.
  static func table(_ headings: [String], _ rows: some Sequence<String>) -> String {
    let head = headings.map { "<th>\($0)</th>" }.joined()
    return "<div class=\"scroll\"><table><thead><tr>\(head)</tr></thead><tbody>"
      + rows.joined() + "</tbody></table></div>"
  }

  /// Adds such a table. Rows for which the page has no room are left out, and counted below it.
  mutating func addTable(_ headings: [String], _ rows: [String]) {
    var room = PortLimits.page - body.utf8.count
    let shown = rows.prefix { row in
      room -= row.utf8.count
      return room >= 0
    }
    body += Self.table(headings, shown)
    let leftOut = PageText.note(ofLeftOut: rows.count - shown.count, "rows")
    if !leftOut.isEmpty { body += "<p>\(leftOut)</p>" }
  }

  /// A row of a table. The cells are HTML.
  static func row(_ cells: [String]) -> String {
    "<tr>" + cells.map { "<td>\($0)</td>" }.joined() + "</tr>\n"
  }

  func text(nonce: String) -> String {
    let refreshing = refresh.map { "<meta http-equiv=\"refresh\" content=\"\($0)\">" } ?? ""
    let title = Self.escaped(title)
    return """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><title>\(title)</title>
      <meta name="viewport" content="width=device-width, initial-scale=1">\(refreshing)
      <style nonce="\(nonce)">\(Self.style)</style></head><body>
      <nav><a href="/">Overview</a> <a href="/connections">Connections</a>
      <a href="/connections?state=closed">Ended</a> <a href="/exchanges">Exchanges</a></nav>
      <h1>\(title)</h1>
      \(body)
      </body></html>

      """
  }

  private static let style = """

    :root { color-scheme: light dark; --line: #0b62a8; --grid: #d5dae0; --soft: #5b6570;
      --card: #f4f6f8; --bad: #b3261e; }
    @media (prefers-color-scheme: dark) { :root { --line: #6cb6ff; --grid: #333b44;
      --soft: #9aa5b1; --card: #1c2127; --bad: #ff8a80; } }
    body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 72rem;
      padding: .8rem; }
    nav a { margin-right: .8rem; } a { color: var(--line); }
    h1 { font-size: 1.25rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; }
    .bad { color: var(--bad); font-weight: 600; } .soft { color: var(--soft); }
    .cards { display: grid; gap: .6rem;
      grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
    .card { background: var(--card); border-radius: .4rem; padding: .5rem .7rem; }
    .card b { font-size: 1.2rem; } svg { display: block; width: 100%; height: 3.5rem; }
    polyline { fill: none; stroke: var(--line); stroke-width: 1.5;
      vector-effect: non-scaling-stroke; }
    svg line { stroke: var(--grid); vector-effect: non-scaling-stroke; }
    .scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
    th, td { border-bottom: 1px solid var(--grid); padding: .25rem .6rem .25rem 0;
      text-align: left; vertical-align: top; white-space: nowrap; }

    """
}

/// Columns of plain text, for terminals. What peers said is escaped before it comes here.
enum TextTable {
  /// Lines of columns that are as wide as their widest cell; numbers go to the right.
  static func of(_ headings: [String], _ rows: [[String]], numbers: Set<Int> = []) -> String {
    let all = [headings] + rows
    let widths = headings.indices.map { column in
      all.map { $0[column].unicodeScalars.count }.max() ?? 0
    }
    return all.map { cells in
      let line = cells.indices.map { column in
        let space = String(
          repeating: " ", count: widths[column] - cells[column].unicodeScalars.count)
        return numbers.contains(column) ? space + cells[column] : cells[column] + space
      }.joined(separator: "  ")
      let end = line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex
      return String(line[..<end])
    }.joined(separator: "\n") + "\n"
  }
}

/// Numbers and times for people.
enum PageText {
  /// What stands on a page of which some loops have no part; empty if all have answered.
  static func note(of incomplete: [Int]) -> String {
    switch incomplete.count {
    case 0: ""
    case 1: "Loop \(incomplete[0]) did not answer: what it has is missing here."
    default:
      "Loops \(incomplete.map(String.init).joined(separator: ", ")) did not answer: what they have "
        + "is missing here."
    }
  }

  /// What stands on a page that has no room for all it should show; empty if it has.
  static func note(ofLeftOut count: Int, _ things: String) -> String {
    count == 0 ? "" : "There is no room for \(count) more \(things)."
  }

  /// A number with three digits that matter, such as `0.12`, `4.5` and `1234`.
  static func number(_ value: Double) -> String {
    let digits = value < 1 ? 1_000.0 : value < 10 ? 100.0 : value < 100 ? 10.0 : 1.0
    let rounded = (value * digits).rounded() / digits
    return rounded == rounded.rounded() ? "\(Int64(rounded))" : "\(rounded)"
  }

  /// A number of bytes, such as `1.2 MiB`.
  static func bytes(_ value: Double) -> String {
    var (value, units) = (value, ["B", "KiB", "MiB", "GiB"][...])
    while value >= 1_024, units.count > 1 {
      value /= 1_024
      units = units.dropFirst()
    }
    return "\(number(value)) \(units[units.startIndex])"
  }

  /// A time in nanoseconds, such as `3 d 4 h`, `5 min 6 s` and `12 ms`.
  static func time(_ nanoseconds: Int64) -> String {
    let milliseconds = max(0, nanoseconds) / 1_000_000
    if milliseconds < 1_000 { return "\(milliseconds) ms" }
    let seconds = milliseconds / 1_000
    if seconds < 60 { return "\(seconds) s" }
    if seconds < 3_600 { return "\(seconds / 60) min \(seconds % 60) s" }
    if seconds < 86_400 { return "\(seconds / 3_600) h \(seconds / 60 % 60) min" }
    return "\(seconds / 86_400) d \(seconds / 3_600 % 24) h"
  }

  /// The name of a version of TLS, such as `1.3`; nil without security.
  static func tls(_ version: String?) -> String? {
    version.map { $0.hasPrefix("TLSv") ? String($0.dropFirst(4)) : $0 }
  }

  /// The names of features.
  static func names(of features: Features) -> [String] {
    [
      (Features.metadata, "metadata"), (.fragments, "fragments"), (.streams, "streams"),
      (.renewal, "renewal"), (.once, "once"),
    ].filter { features.contains($0.0) }.map(\.1)
  }
}
#endif
