// SPDX-License-Identifier: Apache-2.0

/// Counters as text: a line for each that is not zero, such as `requests.succeeded: 12`.
package enum CounterText {
  /// Returns the lines of a structure of counters, in the order of its fields.
  package static func lines(of counters: Any) -> String {
    var lines: [String] = []
    add(counters, "", to: &lines)
    return lines.isEmpty ? "all counters are zero" : lines.joined(separator: "\n")
  }

  private static func add(_ value: Any, _ name: String, to lines: inout [String]) {
    let mirror = Mirror(reflecting: value)
    let children: [(label: String, value: Any)]
    switch mirror.displayStyle {
    case .dictionary:
      // The order of a dictionary differs from run to run.
      children = mirror.children.map { pair in
        let parts = Mirror(reflecting: pair.value).children.map(\.value)
        return ("\(parts[0])", parts[1])
      }.sorted { $0.label < $1.label }
    case .struct where !mirror.children.isEmpty:
      children = mirror.children.map { ($0.label ?? "", $0.value) }
    default:
      if "\(value)" != "0" { lines.append("\(name): \(value)") }
      return
    }
    for (label, value) in children {
      add(value, name.isEmpty ? label : "\(name).\(label)", to: &lines)
    }
  }
}
