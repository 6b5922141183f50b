// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import Foundation
internal import LongLinkTransport
internal import Synchronization

/// Cookies (RFC 6265) that servers set and get back, in memory.
///
/// A cookie is sent only to the host that has set it. If several of your hosts share cookies, name
/// their domain in ``init(sharedDomains:)``. The jar has no list of public suffixes, so it does not
/// find out by itself which hosts belong together. Services may share one jar.
///
/// The jar keeps at most 50 cookies of a host or shared domain, and 300 in all; then the one that
/// was used least recently is evicted. A cookie whose name and value have more than 4,096 bytes
/// together is ignored. It may be used from any thread.
public final class HTTPCookies: Sendable {
  /// The most cookies in all.
  static let most = 300
  /// The most cookies of one host, or of one shared domain, and of one response.
  static let mostOfHost = 50
  /// The most bytes of a cookie's name and value.
  static let mostBytes = 4096

  private struct Key: Hashable {
    let name: String
    let domain: String
    let path: String
  }

  private struct Cookie {
    let value: String
    let isShared: Bool
    let isSecure: Bool
    /// When the cookie expires, in seconds since 1970; nil if it lives as long as the jar.
    let expires: Int64?
    let made: UInt64
    var used: UInt64

    func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
  }

  private struct State {
    var cookies: [Key: Cookie] = [:]
    /// The number of uses so far, in place of a clock.
    var last: UInt64 = 0
  }

  private let sharedDomains: [String]
  private let clock: @Sendable () -> Int64
  private let state = Mutex(State())

  /// Makes an empty jar. `sharedDomains` are names such as `example.com`: hosts in such a domain
  /// may set cookies for each other, with the attribute `Domain`.
  public convenience init(sharedDomains: [String] = []) {
    self.init(sharedDomains: sharedDomains) { Int64(Date().timeIntervalSince1970) }
  }

  init(sharedDomains: [String], clock: @escaping @Sendable () -> Int64) {
    self.sharedDomains = sharedDomains.map { $0.lowercased() }
    self.clock = clock
  }

  /// The number of cookies in the jar; some of them may have expired.
  public var count: Int { state.withLock(of: self) { $0.cookies.count } }

  /// Forgets all cookies.
  public func removeAll() { state.withLock(of: self) { $0.cookies = [:] } }

  /// The value of the field `Cookie` for a request; nil if no cookie fits.
  func field(for address: HTTPAddress) -> String? {
    let now = clock()
    return state.withLock(of: self) { state in
      state.cookies = state.cookies.filter { !$0.value.hasExpired(at: now) }
      let keys = state.cookies.filter { key, cookie in
        (cookie.isShared
          ? HTTPCookies.isHost(address.host, in: key.domain) : address.host == key.domain)
          && HTTPCookies.isPath(address.path, below: key.path)
          && (!cookie.isSecure || address.isSecure)
      }
      .sorted {
        ($1.key.path.utf8.count, $0.value.made) < ($0.key.path.utf8.count, $1.value.made)
      }
      state.last += 1
      for (key, _) in keys { state.cookies[key]?.used = state.last }
      let text = keys.map { "\($0.key.name)=\($0.value.value)" }.joined(separator: "; ")
      return text.isEmpty ? nil : text
    }
  }

  /// Stores the cookies of a response's `Set-Cookie` fields.
  func take(_ fields: [String], from address: HTTPAddress) {
    let now = clock()
    for field in fields.prefix(HTTPCookies.mostOfHost) {
      // The attributes may have about 1,000 bytes more.
      guard field.utf8.count <= HTTPCookies.mostBytes + 1024,
        let parsed = HTTPClient.Cookie(header: field, defaultDomain: ""),
        let (key, isShared) = accept(parsed, field, from: address)
      else { continue }
      let expires =
        parsed.maxAge.map { now + Int64(min($0, 34_560_000)) }
        ?? parsed.expires.map { Int64(clamping: Int($0.timeIntervalSince1970)) }
      state.withLock(of: self) { state in
        // A cookie that came over TLS is not replaced by one that did not.
        if let old = state.cookies[key], old.isSecure, !address.isSecure { return }
        state.last += 1
        let made = state.cookies[key]?.made ?? state.last
        let cookie = Cookie(
          value: parsed.value, isShared: isShared, isSecure: parsed.secure, expires: expires,
          made: made, used: state.last)
        state.cookies[key] = cookie.hasExpired(at: now) ? nil : cookie
        HTTPCookies.evict(&state, of: key.domain)
      }
    }
  }

  /// The key under which a cookie is kept; nil if it is not kept.
  private func accept(
    _ cookie: HTTPClient.Cookie, _ field: String, from address: HTTPAddress
  ) -> (Key, isShared: Bool)? {
    guard cookie.name.utf8.count + cookie.value.utf8.count <= HTTPCookies.mostBytes,
      // Name and value must not break the head, or pass for a second cookie.
      (cookie.name + cookie.value).utf8.allSatisfy({
        $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",")
      }),
      !cookie.secure || address.isSecure
    else { return nil }
    let domain = cookie.domain ?? ""
    let isShared = sharedDomains.contains {
      HTTPCookies.isHost(domain, in: $0) && HTTPCookies.isHost(address.host, in: domain)
    }
    guard domain.isEmpty || domain == address.host || isShared else { return nil }
    let hasPath = field.split(separator: ";").dropFirst().contains {
      $0.drop { $0 == " " || $0 == "\t" }.lowercased().hasPrefix("path=")
    }
    let path = hasPath ? cookie.path : HTTPCookies.folder(of: address.path)
    if cookie.name.hasPrefix("__Secure-"), !cookie.secure { return nil }
    if cookie.name.hasPrefix("__Host-"), !cookie.secure || !domain.isEmpty || path != "/" {
      return nil
    }
    return (Key(name: cookie.name, domain: isShared ? domain : address.host, path: path), isShared)
  }

  private static func evict(_ state: inout State, of domain: String) {
    let ofHost = state.cookies.filter { $0.key.domain == domain }
    if ofHost.count > mostOfHost, let oldest = ofHost.min(by: { $0.value.used < $1.value.used }) {
      state.cookies[oldest.key] = nil
    }
    if state.cookies.count > most,
      let oldest = state.cookies.min(by: { $0.value.used < $1.value.used })
    {
      state.cookies[oldest.key] = nil
    }
  }

  private static func isHost(_ host: String, in domain: String) -> Bool {
    host == domain || host.hasSuffix(".\(domain)") && !isNumeric(host)
  }

  /// Whether a host is an address, which has no domain.
  private static func isNumeric(_ host: String) -> Bool {
    host.hasPrefix("[") || host.utf8.last.map { (0x30...0x39).contains($0) } ?? true
  }

  private static func isPath(_ path: String, below parent: String) -> Bool {
    path == parent || path.hasPrefix(parent.hasSuffix("/") ? parent : parent + "/")
  }

  /// The path of a cookie without a path: the request's path up to its last slash.
  private static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return "/" }
    return String(path[..<slash])
  }
}
#endif
