// SPDX-License-Identifier: Apache-2.0

/// Chooses the names under which the files of an upload are kept: harmless, and each used once.
///
/// Of a name that a client sent, only the last component is used, after the last slash or
/// backslash. Characters that control a terminal or the direction of text become `_`, and a name
/// that would be empty or mean a folder becomes `file`. A name that was used before gets a number
/// before its extension: `a.txt`, `a-2.txt`, `a-3.txt`. So does a name that differs from a used one
/// only in case or normal form, because some file systems take both for the same. A name has at
/// most 255 bytes.
package struct SafeNames {
  /// The most bytes of a name.
  package static let limit = 255

  /// The used names, in their `folded` form.
  private var used: Set<String>
  /// The last number for each group of names whose numbered forms may be the same, so that many
  /// such names need no long search.
  private var numbers: [String: Int] = [:]
  /// The most bytes of a number with its hyphen: enough for the parts of any request.
  private static let mostNumberBytes = 7
  /// The number of numbered names that were tried.
  private(set) var tried = 0

  /// Begins with reserved names, which no file gets.
  package init(reserved: Set<String> = []) {
    used = Set(reserved.map(Self.folded))
  }

  /// Returns a form that is equal for all names that some file system may take for the same:
  /// without case, invisible characters, and final points and blanks. Swift compares strings by
  /// their characters, so the normal form makes no difference.
  private static func folded(_ name: String) -> String {
    let seen = name.unicodeScalars.filter { !$0.properties.isDefaultIgnorableCodePoint }
    let end = seen.lastIndex { $0 != "." && $0 != " " }
    let stem = String(
      String.UnicodeScalarView(seen[..<(end.map(seen.index(after:)) ?? seen.startIndex)]))
    // In both directions, because ß and ss, ſ and s, ς and σ still differ after one of them. ẞ
    // becomes ß first.
    return stem.lowercased().uppercased().lowercased()
  }

  /// Returns the name under which to keep a file that a client calls `sent`.
  package mutating func name(for sent: String) -> String {
    let name = Self.safe(sent)
    if used.insert(Self.folded(name)).inserted { return name }
    let (stem, ending) = Self.split(name)
    // Names that differ only after the place where they are cut have the same numbered forms.
    let common = Self.cut(stem, to: Self.limit - Self.mostNumberBytes - ending.utf8.count)
    let form = Self.folded("\(common)-\(ending)")
    var number = numbers[form, default: 1]
    while true {
      number += 1
      tried += 1
      let suffix = "-\(number)\(ending)"
      let numbered = Self.cut(stem, to: Self.limit - suffix.utf8.count) + suffix
      if used.insert(Self.folded(numbered)).inserted {
        numbers[form] = number
        return numbered
      }
    }
  }

  /// Returns a name without harmful characters, of at most `limit` bytes.
  static func safe(_ sent: String) -> String {
    // By scalar, because a slash with a combining mark is one character, but still a slash.
    let last = sent.unicodeScalars.reversed().prefix { $0 != "/" && $0 != "\\" }.reversed()
    var name = ""
    for scalar in last {
      name.unicodeScalars.append(isHarmful(scalar) ? "_" : scalar)
    }
    if name.isEmpty || name == "." || name == ".." { return "file" }
    let (stem, ending) = split(name)
    return cut(stem, to: limit - ending.utf8.count) + ending
  }

  private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // Joiners belong to the spelling of some languages.
    case .format: scalar != "\u{200C}" && scalar != "\u{200D}"
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: true
    default: false
    }
  }

  /// Splits a name into its stem and a short extension with its point; the extension may be empty.
  private static func split(_ name: String) -> (stem: Substring, ending: Substring) {
    guard let point = name.lastIndex(of: "."), point > name.startIndex,
      name[point...].utf8.count <= 32
    else { return (name[...], "") }
    return (name[..<point], name[point...])
  }

  /// Returns as many whole characters of a text as fit into `count` bytes.
  private static func cut(_ text: Substring, to count: Int) -> String {
    guard text.utf8.count > count else { return String(text) }
    var cut = ""
    var length = 0
    for scalar in text.unicodeScalars {
      length += UTF8.width(scalar)
      if length > count { break }
      cut.unicodeScalars.append(scalar)
    }
    return cut
  }
}
