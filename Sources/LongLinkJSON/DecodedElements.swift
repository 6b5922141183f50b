// SPDX-License-Identifier: Apache-2.0

public import LongLinkReaders

extension DocumentReader {
  /// Returns values from the chosen elements of an XML document, whose text is JSON. Each is
  /// decoded when it is read; the sequence throws `ReaderError`, with `undecodable` if a text does
  /// not fit `type`.
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
  ) -> DocumentElements<Parts, Value> {
    let elements = elements(named: names, error: error, children: false, limits: limits)
    return DocumentElements(
      elements.parts, DecodedElements(base: elements.source) { $0.textBytes })
  }

  /// Returns the elements of a JSON document that `shape` selects. Each is decoded when it is read;
  /// the sequence throws `ReaderError`, with `undecodable` if one does not fit `type`.
  public func values<Value: Decodable>(
    _ shape: JSONReader.Shape, as type: Value.Type, limits: JSONReader.Limits = JSONReader.Limits()
  ) -> DocumentElements<Parts, Value> {
    let values = values(shape, limits: limits)
    return DocumentElements(values.parts, DecodedElements(base: values.source) { $0 })
  }
}

/// Elements of a document, each decoded from JSON.
private struct DecodedElements<Base, Value: Decodable>: ElementSource {
  typealias Element = Value

  let base: any ElementSource<Base>
  let bytes: @Sendable (Base) -> [UInt8]

  func feeder<Parts: AsyncSequence>(of parts: Parts) -> any ElementFeeder<Value>
  where Parts.Element: Sequence<UInt8> {
    DecodingFeeder(base.feeder(of: parts), bytes)
  }
}

/// Takes elements from another feeder, and decodes them.
private final class DecodingFeeder<Base, Value: Decodable>: ElementFeeder {
  private let base: any ElementFeeder<Base>
  private let bytes: @Sendable (Base) -> [UInt8]
  private var hasEnded = false

  init(_ base: any ElementFeeder<Base>, _ bytes: @escaping @Sendable (Base) -> [UInt8]) {
    self.base = base
    self.bytes = bytes
  }

  func next(isolation actor: isolated (any Actor)?) async throws -> Value? {
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
