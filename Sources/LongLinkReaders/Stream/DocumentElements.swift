// SPDX-License-Identifier: Apache-2.0

/// A sequence of the elements of a document that arrives in parts: XML elements, JSON values as
/// bytes, or decoded values. `DocumentReader` makes it.
///
/// You can iterate it only as often as its parts: once, for instance, if they are a stream.
public struct DocumentElements<Parts: AsyncSequence, Element>: AsyncSequence
where Parts.Element: Sequence<UInt8> {
  package let parts: Parts
  package let source: any ElementSource<Element>

  package init(_ parts: Parts, _ source: some ElementSource<Element>) {
    self.parts = parts
    self.source = source
  }

  /// Makes an iterator, with a reader of its own.
  public func makeAsyncIterator() -> Iterator { Iterator(source.feeder(of: parts)) }

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    private let feeder: any ElementFeeder<Element>

    init(_ feeder: any ElementFeeder<Element>) {
      self.feeder = feeder
    }

    /// Returns the next element; nil at the end, and after an error.
    ///
    /// Throws `ReaderError` if the document cannot be read, with the code `undecodable` if an
    /// element does not fit the type that it is decoded as; the error of the parts if they fail;
    /// and `CancellationError` if the task is cancelled.
    public mutating func next() async throws -> Element? {
      try await feeder.next(isolation: #isolation)
    }

    /// Returns the next element, on the given actor; nil at the end, and after an error. Throws as
    /// `next()` does.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
      try await feeder.next(isolation: actor)
    }
  }
}

extension DocumentElements: Sendable where Parts: Sendable {}

/// What the elements of a document are.
package protocol ElementSource<Element>: Sendable {
  associatedtype Element

  /// Makes a feeder of one document.
  func feeder<Parts: AsyncSequence>(of parts: Parts) -> any ElementFeeder<Element>
  where Parts.Element: Sequence<UInt8>
}

/// Takes the elements of one document from its parts, one after the other.
package protocol ElementFeeder<Element>: AnyObject {
  associatedtype Element

  /// Returns the next element; nil at the end, and after an error.
  func next(isolation actor: isolated (any Actor)?) async throws -> Element?
}

/// Chosen elements of an XML document.
struct XMLElements: ElementSource {
  let names: [String]
  let error: String?
  let children: Bool
  let limits: XMLReader.Limits

  func feeder<Parts: AsyncSequence>(of parts: Parts) -> any ElementFeeder<XMLReader.Element>
  where Parts.Element: Sequence<UInt8> {
    let reader = XMLReader(elements: names, error: error, children: children, limits: limits)
    return PartFeeder(reader, parts)
  }
}

/// The elements of a JSON document, as their bytes.
struct JSONElements: ElementSource {
  let shape: JSONReader.Shape
  let limits: JSONReader.Limits

  func feeder<Parts: AsyncSequence>(of parts: Parts) -> any ElementFeeder<[UInt8]>
  where Parts.Element: Sequence<UInt8> {
    PartFeeder(JSONReader(shape, limits: limits), parts)
  }
}
