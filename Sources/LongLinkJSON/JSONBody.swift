// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A value that is sent as JSON, in the body of a request, response, push or item.
///
/// ```swift
/// let find = RPCMethod<JSONBody<Search>, JSONBody<[Place]>>(7)
/// let places = try await client.request(find, JSONBody(Search(text: "harbour"))).value
/// server.route(find) { search, _ in JSONBody(places(for: search.value)) }
/// ```
///
/// For pushes the value conforms to `JSONPush`.
///
/// `JSONEncoder` and `JSONDecoder` code it with their default strategies. A type that needs others,
/// for instance for dates, has them in its own `encode(to:)` and `init(from:)`. The members of
/// objects are sorted by name, and slashes are not escaped. So equal values have the same bytes,
/// unless they contain sets, or dictionaries that become arrays, such as those with keys of an
/// enumeration: the order of their elements is random.
///
/// `JSONDecoder` departs from RFC 8259. It accepts a comma behind the last element or member
/// (`[1,]`), text in UTF-16 and UTF-32, and, in parts that `Value` does not read, invalid numbers
/// and escapes (`01`, `"\q"`). It refuses a zero with an exponent (`0e1`).
public struct JSONBody<Value> {
  /// The value.
  public var value: Value

  /// Makes a body of a value.
  public init(_ value: Value) {
    self.value = value
  }
}

extension JSONBody: Sendable where Value: Sendable {}
extension JSONBody: Equatable where Value: Equatable {}
extension JSONBody: Hashable where Value: Hashable {}

extension JSONBody: BodyEncodable where Value: Encodable {
  /// Always true: to count the bytes of the JSON text takes as long as to make it, so it is made
  /// only once.
  public static var isMeasuredByEncoding: Bool { true }

  /// The number of bytes of the JSON text, which is made to count them. Throws `notRepresentable`
  /// if JSON has no form for the value, such as an infinite number.
  public var encodedByteCount: Int {
    get throws(BodyError) { try encodedBytes().count }
  }

  /// Appends the JSON text. Throws `notRepresentable` if JSON has no form for the value.
  public func encode(into output: inout OutputRawSpan) throws(BodyError) {
    try encodedBytes().encode(into: &output)
  }

  /// Returns the JSON text in UTF-8. Throws `notRepresentable` if JSON has no form for the value.
  public func encodedBytes() throws(BodyError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return try Array(encoder.encode(value))
    } catch {
      throw BodyError(.notRepresentable, detail: "\(error)")
    }
  }
}

extension JSONBody: BodyDecodable where Value: Decodable {
  /// Decodes the JSON text. Throws `malformed` if `JSONDecoder` does not accept it as JSON, or if a
  /// number is out of the range of its type, and `wrongType` if the text does not fit the value's
  /// type in another way.
  public init(decoding body: RawSpan) throws(BodyError) {
    do {
      value = try JSONCoding.decode(Value.self, from: body)
    } catch {
      throw BodyError(error.isSyntax ? .malformed : .wrongType, detail: error.detail)
    }
  }
}

/// A value that is always pushed with the same message type, as a `JSONBody`.
///
/// ```swift
/// for try await moved in client.pushes(of: JSONBody<Moved>.self) { show(moved) }
/// ```
public protocol JSONPush: Codable, Sendable, SendableMetatype {
  /// The message type with which the value is pushed.
  static var pushType: MessageType { get }
}

extension JSONBody: PushMessage where Value: JSONPush {
  /// The message type of the value.
  public static var pushType: MessageType { Value.pushType }
}
