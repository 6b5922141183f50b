// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Calls `JSONDecoder`, and describes its errors without quoting values.
enum JSONCoding {
  /// Why JSON was not decoded.
  struct Failure: Error {
    /// Whether the text is not JSON; otherwise it does not fit the type.
    let isSyntax: Bool
    /// The problem and its place, without quoting values.
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

    /// Returns the text of an error. The path is bounded: its names may come from a dictionary of
    /// the peer's.
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
