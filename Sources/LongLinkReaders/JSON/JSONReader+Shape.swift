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

    /// The elements of the array that is the document.
    public static let array = Shape(steps: [.each], separation: nil)
    /// Values that follow each other, with or without white space between them.
    public static let concatenated = Shape(steps: [], separation: .any)
    /// Values with a line end between any two, as in NDJSON and JSON Lines. Empty lines are
    /// skipped, and values may have line ends inside.
    public static let lines = Shape(steps: [], separation: .lines)

    /// The elements of an array inside the document: `items[*]`, `data.items[*]`, or of several:
    /// `pages[*].items[*]`.
    ///
    /// A path has names of members and `[*]` for all elements of an array, which is its last part.
    /// A name stands behind a dot, unless it is the first; one with a dot or a bracket stands as a
    /// string of JSON in brackets: `["d.results"][*]`. What is not on the path is skipped. Traps if
    /// the path is not written like that; see `init(path:)`.
    public static func path(_ path: String) -> Shape {
      guard let shape = Shape(path: path) else { preconditionFailure("\(path) is not a path") }
      return shape
    }

    /// Makes the shape of a path, as `path(_:)` does; nil for a path that is written in any other
    /// way.
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

    /// Makes limits; each is at least 1 in effect.
    public init(depth: Int = 512, elementBytes: Int = 16 << 20) {
      self.depth = max(1, depth)
      self.elementBytes = max(1, elementBytes)
    }
  }
}
