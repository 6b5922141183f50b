// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import Foundation
internal import LongLinkCore

/// The URL of a request, and its parts.
struct HTTPAddress: Hashable, Sendable {
  /// Why a text is not a URL for a request.
  enum Problem: Error {
    case malformed
    case scheme
    case host
    /// The URL has a name or a password.
    case user
    case tooLong
  }

  /// The most bytes of a URL.
  static let mostBytes = 8192

  /// The whole URL, with its fragment.
  let text: String
  let isSecure: Bool
  /// The scheme, host and port: credentials belong to an origin.
  let origin: String
  let host: String
  let path: String
  /// The target in the request's first line: the path and the query.
  let target: String
  let fragment: String?

  init(_ text: String) throws(Problem) {
    guard text.utf8.count <= HTTPAddress.mostBytes else { throw .tooLong }
    guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }), let url = URL(string: text)
    else { throw .malformed }
    try self.init(url.absoluteURL)
  }

  private init(_ url: URL) throws(Problem) {
    let scheme = url.scheme?.lowercased()
    guard scheme == "http" || scheme == "https" else { throw .scheme }
    guard let components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
      throw .malformed
    }
    guard components.percentEncodedUser == nil, components.percentEncodedPassword == nil else {
      throw .user
    }
    guard let host = url.host(percentEncoded: true), !host.isEmpty else { throw .host }
    isSecure = scheme == "https"
    self.host = host.lowercased()
    let port = components.port ?? (isSecure ? 443 : 80)
    guard (1...65_535).contains(port) else { throw .host }
    origin = "\(isSecure ? "https" : "http")://\(self.host):\(port)"
    path = components.percentEncodedPath.isEmpty ? "/" : components.percentEncodedPath
    if let query = components.percentEncodedQuery {
      target = "\(path)?\(query)"
    } else {
      target = path
    }
    fragment = components.percentEncodedFragment
    text = url.absoluteString
  }

  /// The target of a `Location` field, relative to this URL. Without a fragment of its own, it
  /// keeps this one's.
  func resolving(_ location: String) throws(Problem) -> HTTPAddress {
    guard location.utf8.count <= HTTPAddress.mostBytes else { throw .tooLong }
    guard !location.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
      let base = URL(string: text), let url = URL(string: location, relativeTo: base)
    else { throw .malformed }
    guard var components = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true)
    else { throw .malformed }
    // Credentials in a redirect are dropped.
    components.percentEncodedUser = nil
    components.percentEncodedPassword = nil
    if components.percentEncodedFragment == nil { components.percentEncodedFragment = fragment }
    guard let whole = components.url else { throw .malformed }
    return try HTTPAddress(whole.absoluteString)
  }

  /// The URL without its fragment: what the server sees.
  var withoutFragment: String {
    String(text.prefix { $0 != "#" })
  }

  /// The URL for errors: without query and fragment, which may contain secrets.
  var safeText: String { "\(PeerText(String(text.prefix { $0 != "?" && $0 != "#" })))" }

  /// Any text for errors, without the parts that may contain secrets if it is a URL.
  static func shown(_ text: String) -> PeerText {
    let plain = text.prefix { $0 != "?" && $0 != "#" }
    let start = plain.firstRange(of: "://")?.upperBound ?? plain.startIndex
    // Name and password end at the last `@`, even if they contain another one.
    guard let mark = plain[start...].lastIndex(of: "@") else { return PeerText(String(plain)) }
    return PeerText(String(plain[..<start]) + String(plain[plain.index(after: mark)...]))
  }
}

extension HTTPAddress.Problem: CustomStringConvertible {
  var description: String {
    switch self {
    case .malformed: "it is no URL; one begins with http:// or https://, and has no spaces"
    case .scheme: "it must begin with http:// or https://"
    case .host: "it has no host, or no valid port"
    case .user: "it has a name or a password, which belong in the request's authentication"
    case .tooLong: "it has more than \(HTTPAddress.mostBytes) bytes"
    }
  }
}
#endif
