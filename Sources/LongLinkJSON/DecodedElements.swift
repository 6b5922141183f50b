// SPDX-License-Identifier: Apache-2.0

public import LongLinkReaders

/// The elements of a document that arrives in parts, each decoded from JSON.
public struct DecodedElements<Base: AsyncSequence, Value: Decodable>: AsyncSequence {
  private let base: Base
  private let bytes: @Sendable (Base.Element) -> [UInt8]

  init(_ base: Base, _ bytes: @escaping @Sendable (Base.Element) -> [UInt8]) {
    self.base = base
    self.bytes = bytes
  }

  /// Makes an iterator, with a reader of its own.
  public func makeAsyncIterator() -> Iterator {
    Iterator(base.makeAsyncIterator(), bytes)
  }

  /// An iterator over the decoded values.
  public struct Iterator: AsyncIteratorProtocol {
    private var base: Base.AsyncIterator
    private let bytes: @Sendable (Base.Element) -> [UInt8]
    private var hasEnded = false

    init(_ base: Base.AsyncIterator, _ bytes: @escaping @Sendable (Base.Element) -> [UInt8]) {
      self.base = base
      self.bytes = bytes
    }

    /// Returns the next value; nil at the end, and after an error.
    ///
    /// Throws `ReaderError` if the document cannot be read, with the code `undecodable` if an
    /// element does not fit the type; the error of the parts if they fail; and `CancellationError`
    /// if the task is cancelled.
    public mutating func next() async throws -> Value? {
      try await next(isolation: #isolation)
    }

    /// Returns the next value, like `next()`, on an actor.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Value? {
      guard !hasEnded, let element = try await base.next(isolation: actor) else { return nil }
      let bytes = bytes(element)
      do throws(JSONCoding.Failure) {
        return try unsafe JSONCoding.decode(Value.self, from: bytes.span.bytes)
      } catch {
        hasEnded = true
        throw ReaderError(.undecodable, detail: error.detail)
      }
    }
  }
}

extension DecodedElements: Sendable where Base: Sendable {}

extension DocumentReader {
  /// Returns the text of chosen elements of an XML document, decoded from JSON.
  ///
  /// ```swift
  /// let reader = DocumentReader(client.stream(7, query))
  /// for try await item in reader.elements(named: "node", as: Item.self, error: "error") {
  ///   show(item)
  /// }
  /// ```
  public func elements<Value: Decodable>(
    named names: String..., as type: Value.Type, error: String? = nil,
    limits: XMLReader.Limits = XMLReader.Limits()
  ) -> DecodedElements<XMLElements<Parts>, Value> {
    DecodedElements(elements(named: names, error: error, children: false, limits: limits)) {
      $0.textBytes
    }
  }

  /// Returns the elements of a JSON document, decoded.
  public func values<Value: Decodable>(
    _ shape: JSONReader.Shape, as type: Value.Type, limits: JSONReader.Limits = JSONReader.Limits()
  ) -> DecodedElements<JSONElements<Parts>, Value> {
    DecodedElements(values(shape, limits: limits)) { $0 }
  }
}
