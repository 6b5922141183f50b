// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore
internal import LongLinkUploadMessages

/// A server's Digest challenge (RFC 7616), and how many requests have answered it.
struct DigestSession: Equatable {
  enum Algorithm: String {
    case sha256 = "SHA-256"
    case md5 = "MD5"

    func hash(_ text: String) -> String? {
      let hash: [UInt8]?
      switch self {
      case .sha256: hash = SHA256Digest.hash(of: Array(text.utf8))
      case .md5: hash = MD5Digest.hash(of: Array(text.utf8))
      }
      return hash?.hexadecimal
    }
  }

  let realm: String
  var nonce: String
  let opaque: String?
  let algorithm: Algorithm
  /// Whether the server supports `qop=auth`; without it, requests are not counted (RFC 2069).
  let hasQuality: Bool
  /// The number of requests that have used the nonce.
  var count: UInt32 = 0
  /// Whether no request can use the nonce any more: the count has eight hexadecimal digits.
  var isUsedUp: Bool { count == .max }

  /// Makes the session of a challenge; nil if it needs something unsupported: another algorithm, an
  /// algorithm with `-sess`, or `auth-int` as the only quality of protection.
  init?(_ challenge: Challenge) {
    let parameters = challenge.parameters
    guard challenge.scheme == "digest", let realm = parameters["realm"],
      let nonce = parameters["nonce"],
      let algorithm = Algorithm(rawValue: (parameters["algorithm"] ?? "MD5").uppercased())
    else { return nil }
    // No character may end the header field that the text becomes a part of.
    for text in [realm, nonce, parameters["opaque"] ?? ""] {
      if text.utf8.count > 4096 || text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
        return nil
      }
    }
    guard let hasQuality = DigestSession.hasQuality(parameters["qop"]) else { return nil }
    self.hasQuality = hasQuality
    self.realm = realm
    self.nonce = nonce
    self.algorithm = algorithm
    opaque = parameters["opaque"]
  }

  /// The part of a Digest challenge that is not supported; nil if the challenge can be answered.
  static func problem(_ challenge: Challenge) -> String? {
    guard DigestSession(challenge) == nil else { return nil }
    let parameters = challenge.parameters
    if let algorithm = parameters["algorithm"], Algorithm(rawValue: algorithm.uppercased()) == nil {
      return "Digest with the algorithm \(PeerText(algorithm))"
    }
    if let qualities = parameters["qop"], DigestSession.hasQuality(qualities) == nil {
      return "Digest with qop=\(PeerText(qualities))"
    }
    return "Digest without a usable realm and nonce"
  }

  /// Whether `auth` is among the qualities of protection; false if there are none, as in RFC 2069,
  /// and nil if there are only others.
  private static func hasQuality(_ qualities: String?) -> Bool? {
    let names = (qualities ?? "").split { $0 == "," || $0 == " " || $0 == "\t" }
    if names.contains(where: { $0.lowercased() == "auth" }) { return true }
    return names.isEmpty ? false : nil
  }

  /// The value of the field `Authorization` for the next request; nil if the hash is not available
  /// or the nonce is used up.
  mutating func answer(
    _ method: HTTPMethod, _ target: String, user: String, password: String, clientNonce: String
  ) -> String? {
    guard !isUsedUp else { return nil }
    if hasQuality { count += 1 }
    guard let first = algorithm.hash("\(user):\(realm):\(password)"),
      let second = algorithm.hash("\(method.rawValue):\(target)")
    else { return nil }
    let digits = String(count, radix: 16)
    let number = String(repeating: "0", count: 8 - digits.count) + digits
    let middle = hasQuality ? "\(nonce):\(number):\(clientNonce):auth" : nonce
    guard let response = algorithm.hash("\(first):\(middle):\(second)") else { return nil }
    var text = "Digest username=\(DigestSession.quoted(user))"
    text += ", realm=\(DigestSession.quoted(realm)), nonce=\(DigestSession.quoted(nonce))"
    text += ", uri=\(DigestSession.quoted(target)), response=\"\(response)\""
    text += ", algorithm=\(algorithm.rawValue)"
    if hasQuality { text += ", qop=auth, nc=\(number), cnonce=\"\(clientNonce)\"" }
    if let opaque { text += ", opaque=\(DigestSession.quoted(opaque))" }
    return text
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { result += "\\" }
      result.unicodeScalars.append(scalar)
    }
    return result + "\""
  }
}
#endif
