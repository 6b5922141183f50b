// SPDX-License-Identifier: Apache-2.0

/// The elements of a JSON document that arrives in parts, as their bytes; see `DocumentReader`.
///
/// It is iterated once, unless its parts can be iterated more often.
public struct JSONElements<Parts: AsyncSequence>: AsyncSequence
where Parts.Element: Sequence<UInt8> {
  private let parts: Parts
  private let shape: JSONReader.Shape
  private let limits: JSONReader.Limits

  init(_ parts: Parts, _ shape: JSONReader.Shape, _ limits: JSONReader.Limits) {
    self.parts = parts
    self.shape = shape
    self.limits = limits
  }

  /// Makes an iterator, with a reader of its own.
  public func makeAsyncIterator() -> Iterator {
    Iterator(PartFeeder(JSONReader(shape, limits: limits), parts))
  }

  /// An iterator over the elements.
  public struct Iterator: AsyncIteratorProtocol {
    private let feeder: PartFeeder<JSONReader, Parts>

    init(_ feeder: PartFeeder<JSONReader, Parts>) {
      self.feeder = feeder
    }

    /// Returns the next element; nil at the end, and after an error.
    ///
    /// Throws `ReaderError` if the document cannot be read, the error of the parts if they fail,
    /// and `CancellationError` if the task is cancelled.
    public mutating func next() async throws -> [UInt8]? {
      try await feeder.next(isolation: #isolation)
    }

    /// Returns the next element, like `next()`, on an actor.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws -> [UInt8]? {
      try await feeder.next(isolation: actor)
    }
  }
}

extension JSONElements: Sendable where Parts: Sendable {}
