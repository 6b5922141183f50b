// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkReaders

extension XMLReader {
  /// Limits on the cost of a document. A document that costs more ends with an error.
  public struct Limits: Hashable, Sendable {
    /// The most elements inside each other, the outermost included; 256 by default.
    public var depth: Int
    /// The most bytes of one element that is returned, its tags included; 16 MiB by default.
    public var elementBytes: Int
    /// The most bytes of a tag, a comment, a processing instruction, a reference or a document
    /// type declaration; 1 MiB by default. Text may be longer.
    public var tokenBytes: Int
    /// The most bytes that expat may allocate; 16 MiB by default. It needs several times the size
    /// of the longest tag, and keeps each name of an element or attribute until the document ends.
    public var parserBytes: Int
    /// The number of bytes, from the first mistake in the document on, in which the error element
    /// is looked for; 64 KiB by default. Of the elements with its name that follow the mistake, no
    /// more than 64 are tried. Without an error element nothing is looked for.
    public var searchedBytes: Int

    /// Makes limits. A value below 1 counts as 1, and one above 2^30 as 2^30.
    public init(
      depth: Int = 256, elementBytes: Int = 16 << 20, tokenBytes: Int = 1 << 20,
      parserBytes: Int = 16 << 20, searchedBytes: Int = 64 << 10
    ) {
      self.depth = depth
      self.elementBytes = elementBytes
      self.tokenBytes = tokenBytes
      self.parserBytes = parserBytes
      self.searchedBytes = searchedBytes
    }

    var forC: cll_xml_limits {
      func bounded(_ limit: Int) -> Int { min(max(limit, 1), 1 << 30) }
      return cll_xml_limits(
        depth: bounded(depth), element: bounded(elementBytes), token: bounded(tokenBytes),
        memory: bounded(parserBytes), rubbish: bounded(searchedBytes), children: true)
    }
  }
}
