// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkServer
internal import LongLinkTransport
internal import NIOHTTP1

/// Finds the address of a client behind proxies, in the header that the proxies write.
struct ForwardedAddress: Sendable {
  private let trusted: [AddressRange]
  private let header: HTTPGatewayConfiguration.ForwardedHeader
  /// The most addresses in a header that are read, from its end.
  private static let mostAddresses = 32

  init(trusting proxies: [String], in header: HTTPGatewayConfiguration.ForwardedHeader) {
    trusted = proxies.compactMap(AddressRange.init)
    self.header = header
  }

  /// Returns the address of the client: the last address in the header that is not a trusted
  /// proxy's.
  ///
  /// An unreadable entry ends the search, since no trusted proxy has checked the entries before it:
  /// the address after it counts.
  func client(_ socket: SocketAddress?, _ headers: HTTPHeaders) -> SocketAddress? {
    guard !trusted.isEmpty, let socket, isTrusted(socket) else { return socket }
    var found = socket
    for text in addresses(headers).reversed() {
      guard let address = Self.address(text) else { return found }
      found = address
      if !isTrusted(address) { return found }
    }
    return found
  }

  /// Whether a socket's address is that of a trusted proxy.
  func isProxy(_ socket: SocketAddress?) -> Bool { socket.map(isTrusted) ?? false }

  private func isTrusted(_ address: SocketAddress) -> Bool {
    trusted.contains { $0.contains(address) }
  }

  /// The last addresses in the header, the client's first.
  private func addresses(_ headers: HTTPHeaders) -> [Substring] {
    switch header {
    case .xForwardedFor:
      return headers["X-Forwarded-For"].flatMap { $0.split(separator: ",") }
        .suffix(Self.mostAddresses).map { Self.trimmed($0) }
    case .forwarded:
      let elements = headers["Forwarded"].flatMap { $0.split(separator: ",") }
      return elements.suffix(Self.mostAddresses).map { element in
        let pairs = element.split(separator: ";").map { Self.trimmed($0) }
        let pair = pairs.first { $0.prefix(4).lowercased() == "for=" }
        return Self.trimmed(pair?.dropFirst(4) ?? "")
      }
    }
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
    // A zone is of no use, and the system would look it up.
    guard !text.contains("%") else { return nil }
    if let address = SocketAddress(literal: String(text), port: 0) { return address }
    guard let mark = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: mark)...])
    else { return nil }
    return SocketAddress(literal: String(text[..<mark]), port: port)
  }
}
#endif
