// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Why a document could not be read to its end.
///
/// All elements before the error have been returned before it is thrown.
public struct ReaderError: Error, Hashable, Sendable {
  /// The kind of error.
  public let code: Code
  /// The byte of the document where the error was found, counted from 0; nil if that is not known.
  /// In a document in UTF-16, the bytes of the same text in UTF-8 are counted.
  public let offset: Int?
  /// A human-readable detail; text from the document is escaped and cut to 200 bytes.
  public let detail: String?
  /// The error element, if `code` is `errorElement`.
  public let element: XMLReader.Element?
  /// The name of the encoding, if `code` is `unreadableEncoding` and the document names one.
  public let encoding: String?

  package init(
    _ code: Code, at offset: Int? = nil, detail: String? = nil,
    element: XMLReader.Element? = nil, encoding: String? = nil
  ) {
    self.code = code
    self.offset = offset
    self.detail = detail
    self.element = element
    self.encoding = encoding
  }
}

extension ReaderError {
  /// A kind of error; later versions may add kinds.
  public struct Code: Hashable, Sendable {
    private let name: StaticName

    private enum StaticName: String {
      case malformed
      case truncated
      case errorElement = "an error element"
      case doctype = "a document type declaration with an internal subset"
      case entity = "an entity"
      case unreadableEncoding = "an encoding that cannot be read"
      case tooDeep = "nested too deep"
      case elementTooLarge = "an element is too large"
      case tokenTooLarge = "a tag is too large"
      case outOfMemory = "the parser needs too much memory"
      case notFound = "not found"
      case undecodable
    }

    private init(_ name: StaticName) {
      self.name = name
    }

    /// The document breaks the rules of its format.
    public static let malformed = Code(.malformed)
    /// The document ends before it is complete.
    public static let truncated = Code(.truncated)
    /// The document contains the error element; `element` has its content.
    public static let errorElement = Code(.errorElement)
    /// The document type declaration has an internal subset (`[…]`), which is refused because it
    /// can declare entities.
    public static let doctype = Code(.doctype)
    /// The document refers to an entity other than `amp`, `apos`, `gt`, `lt` and `quot`.
    public static let entity = Code(.entity)
    /// The document has an encoding that cannot be read; <doc:ReadingXML> lists those that can.
    public static let unreadableEncoding = Code(.unreadableEncoding)
    /// The document is nested deeper than its limit.
    public static let tooDeep = Code(.tooDeep)
    /// An element is larger than its limit.
    public static let elementTooLarge = Code(.elementTooLarge)
    /// A tag, comment, processing instruction, reference or document type declaration is larger
    /// than its limit.
    public static let tokenTooLarge = Code(.tokenTooLarge)
    /// The parser would need more memory than its limit.
    public static let outOfMemory = Code(.outOfMemory)
    /// The document is complete, but has neither an array nor `null` at the path.
    public static let notFound = Code(.notFound)
    /// An element was read, but cannot be decoded as its type.
    public static let undecodable = Code(.undecodable)
  }
}

extension ReaderError.Code: CustomStringConvertible {
  /// The kind in a few words.
  public var description: String { name.rawValue }
}

extension ReaderError: CustomStringConvertible {
  /// The kind, the offset and the detail in one line.
  public var description: String {
    var text = code.description
    if let encoding { text += " (\(PeerText(encoding)))" }
    if let offset { text += " at byte \(offset)" }
    if let detail { text += ": \(detail)" }
    if let element {
      let tag = PeerText(utf8: element.tagBytes(limit: PeerText.limit))
      text += " <\(tag)>: \(PeerText(utf8: element.textBytes))"
    }
    return text
  }
}
