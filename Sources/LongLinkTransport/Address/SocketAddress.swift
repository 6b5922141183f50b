// SPDX-License-Identifier: Apache-2.0

/// The address of a socket: an IPv4 or IPv6 address and port, or a Unix-domain path.
public struct SocketAddress: Hashable, Sendable {
  /// The kind of an address.
  package enum Family: Hashable, Sendable {
    /// An IPv4 address and a port.
    case ipv4
    /// An IPv6 address and a port.
    case ipv6
    /// A path in the file system.
    case unix
  }

  package enum Storage: Hashable, Sendable {
    /// The address and the port in the processor's byte order.
    case ipv4(UInt32, port: UInt16)
    /// The address's upper and lower half in the processor's byte order.
    case ipv6(upper: UInt64, lower: UInt64, port: UInt16, scope: UInt32)
    case unix(String)
  }

  package let storage: Storage

  package init(_ storage: Storage) {
    self.storage = storage
  }

  /// Makes an IPv4 address from its four numbers, in the order in which they are written, and a
  /// port: `127, 0, 0, 1` is 127.0.0.1.
  public static func ipv4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8, port: UInt16)
    -> SocketAddress
  {
    let upper = UInt32(a) << 24 | UInt32(b) << 16
    return SocketAddress(.ipv4(upper | UInt32(c) << 8 | UInt32(d), port: port))
  }

  /// Makes a Unix-domain address. A path of more than 107 bytes on Linux, or 103 on macOS, fails
  /// when it is used.
  public static func unix(path: String) -> SocketAddress {
    SocketAddress(.unix(path))
  }

  /// Makes an address from an IPv4 or IPv6 literal such as `127.0.0.1`, `::1` or `fe80::1%eth0`;
  /// nil for any other text, such as a host name, and for an interface that this machine does not
  /// have.
  ///
  /// Brackets around an IPv6 literal are accepted. No name is looked up.
  public init?(literal: String, port: UInt16) {
    guard let storage = Self.parse(literal, port: port) else { return nil }
    self.storage = storage
  }

  /// The kind of this address.
  package var family: Family {
    switch storage {
    case .ipv4: .ipv4
    case .ipv6: .ipv6
    case .unix: .unix
    }
  }

  /// The port; nil for a Unix-domain address.
  public var port: UInt16? {
    switch storage {
    case .ipv4(_, let port): port
    case .ipv6(_, _, let port, _): port
    case .unix: nil
    }
  }

  /// The address without its port, as a literal without brackets; nil for a Unix-domain address.
  public var host: String? {
    switch storage {
    case .ipv4(let address, _):
      Self.text(ipv4: address)
    case .ipv6(let upper, let lower, _, let scope):
      Self.text(ipv6: upper, lower, scope: scope)
    case .unix:
      nil
    }
  }

  /// The path of a Unix-domain address, empty for a socket without a path; nil for an IP address.
  public var path: String? {
    guard case .unix(let path) = storage else { return nil }
    return path
  }
}

extension SocketAddress: CustomStringConvertible {
  /// The address in the usual notation: `127.0.0.1:9000`, `[::1]:9000` or `unix:/run/link`.
  public var description: String {
    switch storage {
    case .ipv4(let address, let port):
      "\(Self.text(ipv4: address)):\(port)"
    case .ipv6(let upper, let lower, let port, let scope):
      "[\(Self.text(ipv6: upper, lower, scope: scope))]:\(port)"
    case .unix(let path):
      "unix:\(path)"
    }
  }
}
