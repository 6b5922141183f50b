// SPDX-License-Identifier: Apache-2.0

#if HTTP

/// An authentication challenge of a server (RFC 9110, section 11.3).
struct Challenge: Equatable {
  /// The scheme, in lower case.
  let scheme: String
  /// The parameters, whose names are in lower case.
  var parameters: [String: String] = [:]

  /// The most challenges and parameters that are read from one field.
  private static let most = 32

  /// Reads the challenges of all `WWW-Authenticate` fields. An unreadable part ends its field.
  static func read(_ fields: [String]) -> [Challenge] {
    var challenges: [Challenge] = []
    for field in fields.prefix(most) {
      var reader = ChallengeReader(field)
      reader.read(into: &challenges, most: most)
    }
    return challenges
  }
}

/// Reads one field. A comma separates challenges as well as parameters: a word without `=` after it
/// is a scheme.
private struct ChallengeReader {
  private var rest: Substring.UTF8View

  init(_ field: String) { rest = Substring(field).utf8 }

  mutating func read(into challenges: inout [Challenge], most: Int) {
    while challenges.count < most {
      skip { $0 == "," || $0 == " " || $0 == "\t" }
      guard let word = token() else { return }
      skip { $0 == " " || $0 == "\t" }
      guard rest.first == UInt8(ascii: "=") else {
        challenges.append(Challenge(scheme: word.lowercased()))
        continue
      }
      rest.removeFirst()
      skip { $0 == " " || $0 == "\t" }
      guard !challenges.isEmpty, let value = quoted() ?? token() else {
        // The characters of a token68, which no supported scheme uses.
        skip { $0 != "," }
        continue
      }
      let last = challenges.count - 1
      let name = word.lowercased()
      if challenges[last].parameters.count < most, challenges[last].parameters[name] == nil {
        challenges[last].parameters[name] = value
      }
    }
  }

  private mutating func skip(_ isSkipped: (Unicode.Scalar) -> Bool) {
    rest = rest.drop { isSkipped(Unicode.Scalar($0)) }
  }

  private mutating func token() -> String? {
    let word = rest.prefix { byte in
      HTTPMethod.isToken(String(Unicode.Scalar(byte))) || byte == UInt8(ascii: "/")
        || byte == UInt8(ascii: ":")
    }
    rest = rest[word.endIndex...]
    return word.isEmpty ? nil : String(Substring(word))
  }

  private mutating func quoted() -> String? {
    guard rest.first == UInt8(ascii: "\"") else { return nil }
    rest.removeFirst()
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
      if byte == UInt8(ascii: "\\") {
        guard let next = rest.popFirst() else { return nil }
        bytes.append(next)
      } else {
        bytes.append(byte)
      }
    }
    return nil
  }
}
#endif
