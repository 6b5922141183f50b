// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport
internal import NIOHTTP1

/// Finds the client behind proxies, in what the proxies say.
struct ForwardedAddress: Sendable {
  private let trusted: [AddressRange]
  /// The most addresses of a header that are looked at, from its end.
  private static let mostAddresses = 32

  init(trusting proxies: [String]) {
    trusted = proxies.compactMap(AddressRange.init)
  }

  /// Returns the address of the client: the last one that no trusted proxy has.
  ///
  /// An unreadable entry ends the search, since nothing before it was checked by anyone: the
  /// address behind it counts.
  func client(_ socket: SocketAddress?, _ headers: HTTPHeaders) -> SocketAddress? {
    guard !trusted.isEmpty, let socket, isTrusted(socket) else { return socket }
    var found = socket
    for text in Self.addresses(headers).suffix(Self.mostAddresses).reversed() {
      guard let address = Self.address(text) else { return found }
      found = address
      if !isTrusted(address) { return found }
    }
    return found
  }

  private func isTrusted(_ address: SocketAddress) -> Bool {
    trusted.contains { $0.contains(address) }
  }

  /// The addresses that the proxies have noted, the client's first.
  private static func addresses(_ headers: HTTPHeaders) -> [Substring] {
    let forwarded = headers["Forwarded"].flatMap { $0.split(separator: ",") }
    guard forwarded.isEmpty else {
      return forwarded.map { element in
        let pairs = element.split(separator: ";").map { trimmed($0) }
        let pair = pairs.first { $0.prefix(4).lowercased() == "for=" }
        return trimmed(pair?.dropFirst(4) ?? "")
      }
    }
    return headers["X-Forwarded-For"].flatMap { $0.split(separator: ",") }.map { trimmed($0) }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.first, first.isWhitespace || first == "\"" { text.removeFirst() }
    while let last = text.last, last.isWhitespace || last == "\"" { text.removeLast() }
    return text
  }

  /// Reads an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
  /// `[2001:db8::1]:80`; nil for a name, `unknown` and the like.
  static func address(_ text: Substring) -> SocketAddress? {
    // A zone is of no use here, and would be looked up.
    guard !text.contains("%") else { return nil }
    if let address = SocketAddress(literal: String(text), port: 0) { return address }
    guard let mark = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: mark)...])
    else { return nil }
    return SocketAddress(literal: String(text[..<mark]), port: port)
  }
}
#endif
