// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What `JSONDecoder` is called with and throws.
enum JSONCoding {
  /// Why JSON was not decoded.
  struct Failure: Error {
    /// Whether the text is no JSON at all.
    let isSyntax: Bool
    /// What was wrong and where, without any of its text.
    let detail: String

    init(_ error: any Error) {
      switch error as? DecodingError {
      case .dataCorrupted(let context):
        isSyntax = context.codingPath.isEmpty
        detail = Failure.text("cannot be read", context)
      case .keyNotFound(let key, let context):
        isSyntax = false
        detail = Failure.text("has no member \(key.stringValue)", context)
      case .valueNotFound(let type, let context):
        isSyntax = false
        detail = Failure.text("is null instead of \(type)", context)
      case .typeMismatch(let type, let context):
        isSyntax = false
        detail = Failure.text("is not \(type)", context)
      default:
        isSyntax = false
        detail = "\(type(of: error))"
      }
    }

    /// The path is bounded: names in it come from the type, or from a dictionary of the peer's.
    private static func text(_ what: String, _ context: DecodingError.Context) -> String {
      let path = context.codingPath.prefix(8).map { key in
        key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue.prefix(40))"
      }
      return "the value\(path.joined()) \(what)"
    }
  }

  static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: RawSpan
  ) throws(Failure) -> Value {
    // The decoder needs its own copy.
    let data = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
    do {
      return try JSONDecoder().decode(type, from: data)
    } catch {
      throw Failure(error)
    }
  }
}
