// SPDX-License-Identifier: Apache-2.0

/// Chosen elements of an XML document that arrives in parts; see `DocumentReader`.
///
/// It is iterated once, unless its parts can be iterated more often.
public struct XMLElements<Parts: AsyncSequence>: AsyncSequence
where Parts.Element: Sequence<UInt8> {
  private let parts: Parts
  private let names: [String]
  private let error: String?
  private let children: Bool
  private let limits: XMLReader.Limits

  init(
    _ parts: Parts, _ names: [String], _ error: String?, _ children: Bool,
    _ limits: XMLReader.Limits
  ) {
    self.parts = parts
    self.names = names
    self.error = error
    self.children = children
    self.limits = limits
  }

  /// Makes an iterator, with a reader of its own.
  public func makeAsyncIterator() -> Iterator {
    let reader = XMLReader(elements: names, error: error, children: children, limits: limits)
    return Iterator(PartFeeder(reader, parts))
  }

  /// An iterator over the elements.
  public struct Iterator: AsyncIteratorProtocol {
    private let feeder: PartFeeder<XMLReader, Parts>

    init(_ feeder: PartFeeder<XMLReader, Parts>) {
      self.feeder = feeder
    }

    /// Returns the next element; nil at the end, and after an error.
    ///
    /// Throws `ReaderError` if the document cannot be read, the error of the parts if they fail,
    /// and `CancellationError` if the task is cancelled.
    public mutating func next() async throws -> XMLReader.Element? {
      try await feeder.next(isolation: #isolation)
    }

    /// Returns the next element, like `next()`, on an actor.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws -> XMLReader.Element? {
      try await feeder.next(isolation: actor)
    }
  }
}

extension XMLElements: Sendable where Parts: Sendable {}
