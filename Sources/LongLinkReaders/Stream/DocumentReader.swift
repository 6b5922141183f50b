// SPDX-License-Identifier: Apache-2.0

/// Reads a document from an asynchronous sequence of its parts.
///
/// The parts are whatever brings bytes: the items of a LongLink stream, the body of an HTTP
/// response, a file that is read in pieces.
///
/// ```swift
/// let reader = DocumentReader(client.stream(7, query))
/// for try await node in reader.elements(named: "node", error: "error") { show(node.text) }
/// ```
///
/// A part is taken from the sequence only when an element is asked for and the bytes so far have
/// none. So a slow reader holds up the sender, if the sequence has back-pressure.
public struct DocumentReader<Parts: AsyncSequence> where Parts.Element: Sequence<UInt8> {
  private let parts: Parts

  /// Makes a reader of one document, whose parts are iterated when its elements are.
  public init(_ parts: Parts) {
    self.parts = parts
  }

  /// Returns chosen elements of an XML document, each as soon as its last byte has arrived.
  ///
  /// The sequence ends when the parts do, and throws what they throw. It throws `ReaderError` if
  /// the document is not complete then or cannot be read, and `errorElement` as soon as the error
  /// element has arrived. `XMLReader` explains the parameters.
  public func elements(
    named names: String..., error: String? = nil, children: Bool = true,
    limits: XMLReader.Limits = XMLReader.Limits()
  ) -> DocumentElements<Parts, XMLReader.Element> {
    elements(named: names, error: error, children: children, limits: limits)
  }

  /// Returns the elements of an XML document that have one of these names, each as soon as its last
  /// byte has arrived.
  ///
  /// The sequence ends when the parts do, and throws what they throw. It throws `ReaderError` if
  /// the document is not complete then or cannot be read, and `errorElement` as soon as the error
  /// element has arrived. `XMLReader` explains the parameters.
  public func elements(
    named names: [String], error: String? = nil, children: Bool = true,
    limits: XMLReader.Limits = XMLReader.Limits()
  ) -> DocumentElements<Parts, XMLReader.Element> {
    DocumentElements(
      parts, XMLElements(names: names, error: error, children: children, limits: limits))
  }

  /// Returns the elements of a JSON document as their bytes, each as soon as its last byte has
  /// arrived.
  ///
  /// The sequence ends when the parts do, and throws what they throw. It throws `ReaderError` if
  /// the document is not complete then or cannot be read.
  public func values(
    _ shape: JSONReader.Shape, limits: JSONReader.Limits = JSONReader.Limits()
  ) -> DocumentElements<Parts, [UInt8]> {
    DocumentElements(parts, JSONElements(shape: shape, limits: limits))
  }
}

extension DocumentReader: Sendable where Parts: Sendable {}
