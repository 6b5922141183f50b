// SPDX-License-Identifier: Apache-2.0

extension JSONReader {
  /// Where the elements of a document are.
  public struct Shape: Hashable, Sendable {
    /// One step into the document.
    enum Step: Hashable {
      case member(of: [UInt8])
      case each
    }

    /// How values follow each other outside of arrays; nil if there is only one.
    enum Separation: Hashable {
      case any
      case lines
    }

    let steps: [Step]
    let separation: Separation?

    /// The document is one array, whose elements are returned.
    public static let array = Shape(steps: [.each], separation: nil)
    /// The document is a series of values, with or without white space between them.
    public static let concatenated = Shape(steps: [], separation: .any)
    /// The document is a series of values with a line end between any two, as in NDJSON and JSON
    /// Lines. Empty lines are skipped, and values may have line ends inside.
    public static let lines = Shape(steps: [], separation: .lines)

    /// Makes the shape of a document that has its elements in an array (`items[*]`,
    /// `data.items[*]`), or in several arrays (`pages[*].items[*]`).
    ///
    /// A path consists of names of members, and of `[*]` for all elements of an array. It ends with
    /// `[*]`. There is a dot before each name but the first. A name that has a dot or a bracket is
    /// written as a JSON string in brackets: `["d.results"][*]`. Members that are not on the path
    /// are skipped. Traps if the path is invalid; `init(path:)` returns nil instead.
    public static func path(_ path: String) -> Shape {
      guard let shape = Shape(path: path) else { preconditionFailure("\(path) is not a path") }
      return shape
    }

    /// Makes the shape of a path, which `path(_:)` describes; nil if the path is invalid.
    public init?(path: String) {
      var steps: [Step] = []
      var rest = Array(path.utf8)[...]
      while !rest.isEmpty {
        guard let step = Shape.nextStep(&rest, isFirst: steps.isEmpty) else { return nil }
        steps.append(step)
      }
      guard steps.last == .each else { return nil }
      self.init(steps: steps, separation: nil)
    }

    private static func nextStep(_ rest: inout ArraySlice<UInt8>, isFirst: Bool) -> Step? {
      if rest.starts(with: "[*]".utf8) {
        rest = rest.dropFirst(3)
        return .each
      }
      if rest.first == UInt8(ascii: "[") {
        guard let quoted = JSONName.quoted(at: rest.dropFirst()), let name = JSONName.text(quoted)
        else { return nil }
        rest = rest[quoted.endIndex...]
        return rest.popFirst() == UInt8(ascii: "]") ? .member(of: name) : nil
      }
      if !isFirst, rest.popFirst() != UInt8(ascii: ".") { return nil }
      let name = rest.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "[") }
      rest = rest[name.endIndex...]
      guard !name.isEmpty, !name.contains(UInt8(ascii: "]")) else { return nil }
      return .member(of: Array(name))
    }

    private init(steps: [Step], separation: Separation?) {
      self.steps = steps
      self.separation = separation
    }
  }

  /// Limits on the cost of a document. A document that costs more ends with an error.
  public struct Limits: Hashable, Sendable {
    /// The most arrays and objects inside each other; 512 by default, as for `JSONDecoder`.
    public var depth: Int
    /// The most bytes of one element that is returned, or of a member's name; 16 MiB by default.
    public var elementBytes: Int

    /// Makes limits. A value below 1 counts as 1.
    public init(depth: Int = 512, elementBytes: Int = 16 << 20) {
      self.depth = max(1, depth)
      self.elementBytes = max(1, elementBytes)
    }
  }
}
