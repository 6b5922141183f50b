// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
/// Lines of source, indented by two spaces per level.
struct SourceText {
  private(set) var text = ""
  private var level = 0

  /// Adds lines at the current level.
  mutating func add(_ lines: String) {
    for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
      if !line.isEmpty { text += String(repeating: "  ", count: level) + line }
      text += "\n"
    }
  }

  /// Adds `head`, the lines of `body` one level deeper, and `tail`.
  mutating func block(
    _ head: String, closing tail: String = "}", _ body: (inout SourceText) -> Void
  ) {
    add(head)
    level += 1
    body(&self)
    level -= 1
    add(tail)
  }

  /// Adds documentation: `comment`, or `fallback` if it is empty.
  mutating func document(_ comment: String, else fallback: String) {
    let lines = comment.split(separator: "\n").map { $0.drop { $0 == " " } }
    add(lines.isEmpty ? "/// " + fallback : lines.joined(separator: "\n"))
  }
}
#endif
