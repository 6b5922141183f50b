// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkReaders

/// Reads chosen elements of an XML document while the document arrives.
///
/// Feed it bytes, in parts of any size, and take elements until there are none:
///
/// ```swift
/// var reader = XMLReader(elements: ["node"], error: "error")
/// for part in parts {
///   reader.feed(part)
///   while let node = try reader.next() { show(node["id"], node.text) }
/// }
/// reader.finish()
/// while let node = try reader.next() { show(node["id"], node.text) }
/// ```
///
/// An element is returned as soon as its last byte has been fed. The document is parsed only as far
/// as elements are taken; bytes that were fed and not parsed are kept. It makes no difference how
/// the document is cut into parts.
///
/// Chosen elements are found at any depth. The elements inside a chosen element are its content,
/// even if they have a chosen name.
///
/// A document type declaration is skipped, and nothing that it names is fetched; one with an
/// internal subset is refused. All entities except the five that XML predefines are refused.
/// <doc:ReadingXML> lists the encodings that can be read.
///
/// A reader is used by one task at a time.
@safe
public struct XMLReader: ~Copyable {
  /// Made by `cll_xml_create`, and destroyed with this value.
  private let reader: OpaquePointer
  private var failure: ReaderError?
  private var isFinished = false

  /// Makes a reader of one document.
  ///
  /// - Parameters:
  ///   - names: The names of the elements to return, as the document writes them, with their
  ///     prefixes. Traps if a name is empty or contains U+0000.
  ///   - error: The name of the element that ends the document with an error, if there is one. It
  ///     is found at any depth, also in a document that is never completed, and in one that is
  ///     broken. `next()` then throws `errorElement`.
  ///   - children: Whether the elements inside a chosen one are kept. Otherwise it has only their
  ///     text. An error element always has its children.
  ///   - limits: Limits on the cost of the document.
  public init(
    elements names: some Sequence<String>, error: String? = nil, children: Bool = true,
    limits: Limits = Limits()
  ) {
    var list: [CChar] = []
    for name in names { list += XMLReader.nameForC(name) }
    var limits = limits.forC
    limits.children = children
    // The C functions copy their arguments.
    unsafe reader = list.withUnsafeBufferPointer { list in
      guard let error else {
        return unsafe cll_xml_create(list.baseAddress, list.count, nil, &limits)
      }
      return unsafe XMLReader.nameForC(error).withUnsafeBufferPointer { name in
        unsafe cll_xml_create(list.baseAddress, list.count, name.baseAddress, &limits)
      }
    }
  }

  deinit {
    unsafe cll_xml_destroy(reader)
  }

  private static func nameForC(_ name: String) -> [CChar] {
    precondition(!name.isEmpty && !name.utf8.contains(0), "\(name) is not the name of an element")
    return name.utf8.map { CChar(bitPattern: $0) } + [0]
  }

  /// Adds the next bytes of the document, which are copied. Traps after `finish()`.
  public mutating func feed(_ bytes: RawSpan) {
    precondition(!isFinished, "the document has already been finished")
    unsafe bytes.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      unsafe cll_xml_feed(reader, start, bytes.count)
    }
  }

  /// Adds the next bytes of the document, which are copied. Traps after `finish()`.
  public mutating func feed(_ bytes: some Sequence<UInt8>) {
    withRawSpan(of: bytes) { feed($0) }
  }

  /// Ends the document: it has no more bytes.
  public mutating func finish() {
    isFinished = true
    unsafe cll_xml_finish(reader)
  }

  /// Returns the next chosen element; nil if more bytes are needed, and nil after `finish()` if the
  /// document was complete.
  ///
  /// Throws `ReaderError` if the document is broken, incomplete or beyond a limit, or has the error
  /// element, once all elements before it were returned. Every later call throws the same error.
  public mutating func next() throws(ReaderError) -> Element? {
    if let failure { throw failure }
    let step = unsafe cll_xml_next(reader)
    switch step {
    case cll_xml_element:
      return taken()
    case cll_xml_error_element:
      let error = ReaderError(.errorElement, element: taken())
      failure = error
      throw error
    case cll_xml_failed:
      let error = unsafe ReaderError(cll_xml_failure_of(reader).pointee)
      failure = error
      throw error
    default:
      return nil
    }
  }

  private func taken() -> Element {
    let size = unsafe cll_xml_size(reader)
    // The function writes exactly `size` bytes.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { memory, count in
      if let start = memory.baseAddress { unsafe cll_xml_take(reader, start) }
      count = size
    }
    return Element(bytes)
  }

  /// The bytes that the reader and its parser have allocated, without elements that were returned.
  package var allocatedBytes: Int { unsafe cll_xml_allocated(reader) }

  /// The largest value of `allocatedBytes` so far.
  package var mostAllocatedBytes: Int { unsafe cll_xml_most_allocated(reader) }
}

extension ReaderError {
  fileprivate init(_ failure: cll_xml_failure) {
    let code: Code =
      switch unsafe failure.kind {
      case cll_xml_truncated: .truncated
      case cll_xml_doctype: .doctype
      case cll_xml_entity: .entity
      case cll_xml_encoding: .unreadableEncoding
      case cll_xml_too_deep: .tooDeep
      case cll_xml_element_too_large: .elementTooLarge
      case cll_xml_token_too_large: .tokenTooLarge
      case cll_xml_out_of_memory: .outOfMemory
      default: .malformed
      }
    // The detail is a constant of expat's, and the name ends with a 0.
    let detail = unsafe failure.detail.map { unsafe String(cString: $0) }
    let name = unsafe withUnsafeBytes(of: failure.encoding) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    self.init(
      code, at: unsafe Int(failure.offset), detail: detail, encoding: name.isEmpty ? nil : name)
  }
}
