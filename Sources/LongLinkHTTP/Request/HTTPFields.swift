// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOHTTP1

/// HTTP header fields, a sequence of names and values in their order. Look-ups by name ignore case.
public struct HTTPFields: Hashable, Sendable, Sequence, ExpressibleByDictionaryLiteral {
  struct Field: Hashable, Sendable {
    let name: String
    let value: String
  }

  private(set) var fields: [Field]

  /// Returns the fields one by one, in their order.
  public func makeIterator() -> IndexingIterator<[(name: String, value: String)]> {
    fields.map { (name: $0.name, value: $0.value) }.makeIterator()
  }

  /// Makes fields from names and values.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0.0, value: $0.1) }
  }

  /// Makes an empty list of fields.
  public init() { fields = [] }

  init(_ headers: HTTPHeaders) {
    fields = headers.map { Field(name: $0.name, value: $0.value) }
  }

  /// The first value of a name; nil if there is none. Setting it removes all fields of the name,
  /// and then adds one at the end unless the new value is nil.
  public subscript(name: String) -> String? {
    get { fields.first { HTTPFields.isSame($0.name, name) }?.value }
    set {
      fields.removeAll { HTTPFields.isSame($0.name, name) }
      if let newValue { fields.append(Field(name: name, value: newValue)) }
    }
  }

  /// Returns all values of a name in their order; an empty array if there is none.
  public func values(of name: String) -> [String] {
    fields.filter { HTTPFields.isSame($0.name, name) }.map(\.value)
  }

  /// Returns the fields whose names, in lower case, are not in `names`.
  func without(_ names: Set<String>) -> HTTPFields {
    var rest = self
    rest.fields.removeAll { names.contains($0.name.lowercased()) }
    return rest
  }

  /// Adds a field after the existing ones.
  public mutating func add(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value))
  }

  static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.count == other.utf8.count && one.lowercased() == other.lowercased()
  }

  /// The first field that could break the head: its name is no token, or its value has a line break
  /// or another control character. Nil if all are valid.
  var invalid: Field? {
    fields.first { field in
      !HTTPMethod.isToken(field.name)
        || field.value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
    }
  }
}

/// The method of a request.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable {
  /// The method's name, such as `GET`.
  public let rawValue: String

  /// Makes a method from its name, which is case-sensitive: `get` is not `GET`. Nil unless the name
  /// is a token (RFC 9110, section 5.6.2): letters, digits and some punctuation, at least one
  /// character.
  public init?(rawValue: String) {
    guard HTTPMethod.isToken(rawValue) else { return nil }
    self.rawValue = rawValue
  }

  private init(_ name: String) { rawValue = name }

  /// `GET` reads a resource.
  public static let get = HTTPMethod("GET")
  /// `HEAD` reads only the head of a response.
  public static let head = HTTPMethod("HEAD")
  /// `POST` sends a body to a resource, which decides what to do with it.
  public static let post = HTTPMethod("POST")
  /// `PUT` replaces a resource.
  public static let put = HTTPMethod("PUT")
  /// `PATCH` changes a part of a resource.
  public static let patch = HTTPMethod("PATCH")
  /// `DELETE` removes a resource.
  public static let delete = HTTPMethod("DELETE")
  /// `OPTIONS` asks which methods a resource supports.
  public static let options = HTTPMethod("OPTIONS")

  /// Whether requests of the method only read.
  var isSafe: Bool { self == .get || self == .head || self == .options }
  /// Whether a request of the method has the same effect if it runs twice.
  var isIdempotent: Bool { isSafe || self == .put || self == .delete }

  /// Whether a text is a token (RFC 9110, section 5.6.2).
  static func isToken(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch Unicode.Scalar(byte) {
        case "0"..."9", "A"..."Z", "a"..."z", "!", "#", "$", "%", "&", "'", "*", "+", "-", ".",
          "^", "_", "`", "|", "~":
          true
        default: false
        }
      }
  }
}
#endif
