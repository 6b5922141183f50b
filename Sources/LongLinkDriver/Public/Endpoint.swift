// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
public import LongLinkTransport

/// The host and port, or the Unix-domain socket, of a server.
public struct Endpoint: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case host(String, port: UInt16)
    case unix(path: String)
  }

  package let kind: Kind

  /// Makes an endpoint from a host name or a literal IPv4 or IPv6 address, and a port of 1 to
  /// 65,535. A server may also listen on port 0, for which the system picks a free one.
  public static func host(_ name: String, port: UInt16) -> Endpoint {
    Endpoint(kind: .host(name, port: port))
  }

  /// Makes an endpoint from the path of a Unix-domain socket: at most 107 bytes on Linux, 103 on
  /// macOS. A client or server with a longer path fails with `invalidConfiguration`.
  public static func unix(path: String) -> Endpoint {
    Endpoint(kind: .unix(path: path))
  }

  /// The host name or address; nil for a Unix socket.
  package var host: String? {
    if case .host(let name, _) = kind { name } else { nil }
  }

  /// The endpoint's text in a goaway; nil if a goaway cannot name it.
  package var alternativeText: String? {
    let text = description
    return Endpoint(alternative: text) == self ? text : nil
  }

  /// The endpoint and one of its addresses, or only the address if both are the same.
  package func text(at address: SocketAddress) -> String {
    description == address.description ? description : "\(self), \(address)"
  }

  /// Throws if a client could never connect to it, or a server never listen on it.
  package func validate(field: String, by role: Role) throws(LongLinkError) {
    switch kind {
    case .host(let name, let port):
      if name.isEmpty { throw .configuration(field, "the host is empty") }
      if name.utf8.contains(0) { throw .configuration(field, "the host contains a NUL") }
      if role == .client, port == 0 {
        throw .configuration(field, "a client cannot connect to port 0")
      }
    case .unix(let path):
      if path.isEmpty { throw .configuration(field, "the path is empty") }
      if path.utf8.contains(0) { throw .configuration(field, "the path contains a NUL") }
      let (count, longest) = (path.utf8.count, SocketAddress.longestUnixPath)
      if count > longest {
        throw .configuration(
          field, "the path has \(count) bytes; a Unix socket's path has at most \(longest)")
      }
    }
  }
}

extension Endpoint {
  /// Makes the endpoint of an address, such as one of a server's `addresses`.
  public init(_ address: SocketAddress) {
    if let host = address.host, let port = address.port {
      self = .host(host, port: port)
    } else {
      self = .unix(path: address.path ?? "")
    }
  }

  /// Parses an endpoint in a goaway: `host:port`, with an IPv6 address in brackets.
  package init?(alternative text: String) {
    guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")),
      let port = UInt16(text[text.index(after: colon)...]), port > 0,
      text[text.index(after: colon)...].utf8.allSatisfy({ (48...57).contains($0) })
    else { return nil }
    var host = text[..<colon]
    if host.first == "[" {
      guard host.last == "]" else { return nil }
      host = host.dropFirst().dropLast()
      guard host.utf8.contains(UInt8(ascii: ":")) else { return nil }
    } else if host.utf8.contains(UInt8(ascii: ":")) {
      return nil
    }
    // The longest DNS name has 253 bytes (RFC 1035, section 2.3.4).
    guard !host.isEmpty, host.utf8.count <= 253,
      host.utf8.allSatisfy({
        (33...126).contains($0) && $0 != UInt8(ascii: "[") && $0 != UInt8(ascii: "]")
      })
    else { return nil }
    self = .host(String(host), port: port)
  }
}

extension Endpoint: CustomStringConvertible {
  /// `host:port`, with an IPv6 address in brackets, or `unix:path`.
  public var description: String {
    switch kind {
    case .host(let name, let port): name.contains(":") ? "[\(name)]:\(port)" : "\(name):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
