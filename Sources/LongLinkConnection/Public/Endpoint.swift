/// Where a server is reached.
public struct Endpoint: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case host(String, port: UInt16)
    case unix(path: String)
  }

  package let kind: Kind

  /// A host name or a literal IPv4 or IPv6 address, and a port of 1 to 65,535.
  public static func host(_ name: String, port: UInt16) -> Endpoint {
    Endpoint(kind: .host(name, port: port))
  }

  /// A Unix-domain socket by its path in the file system.
  public static func unix(path: String) -> Endpoint {
    Endpoint(kind: .unix(path: path))
  }

  /// Throws when a client could never reach it.
  package func validate(field: String) throws(LongLinkError) {
    switch kind {
    case .host(let name, let port):
      if name.isEmpty { throw .configuration(field, "the host is empty") }
      if name.utf8.contains(0) { throw .configuration(field, "the host contains a NUL") }
      if port == 0 { throw .configuration(field, "a client cannot connect to port 0") }
    case .unix(let path):
      if path.isEmpty { throw .configuration(field, "the path is empty") }
      if path.utf8.contains(0) { throw .configuration(field, "the path contains a NUL") }
    }
  }
}

extension Endpoint: CustomStringConvertible {
  /// `host:port`, or `unix:path`.
  public var description: String {
    switch kind {
    case .host(let name, let port): name.contains(":") ? "[\(name)]:\(port)" : "\(name):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
