// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkTransport
internal import NIOHTTP1

/// A request to the port.
struct PortRequest {
  /// The forms of an answer that a client can ask for.
  enum Form {
    case html
    case json
    case text
  }

  let method: HTTPMethod
  /// The form of the answer. Health and what operates the server are JSON alone.
  let form: Form
  /// The path without its first slash, in parts.
  let path: [Substring]
  let parameters: [(name: Substring, value: Substring)]
  let host: String?
  let hasOrigin: Bool
  let authorization: String?
  let address: SocketAddress?
  /// The port's own address on this connection.
  let local: SocketAddress?

  init(_ head: HTTPRequestHead, from address: SocketAddress?, to local: SocketAddress?) {
    method = head.method
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts.first ?? ""
    // A whole URL, as for a proxy, has no path here.
    self.path =
      path == "/"
      ? []
      : path.hasPrefix("/")
        ? path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) : [path]
    let query = parts.count > 1 ? parts[1] : ""
    parameters =
      query.isEmpty
      ? []
      : query.split(separator: "&", omittingEmptySubsequences: false).map { pair in
        let mark = pair.firstIndex(of: "=") ?? pair.endIndex
        return (pair[..<mark], pair[mark...].dropFirst())
      }
    form =
      head.method == .POST || ["/livez", "/readyz"].contains(path)
      ? .json : Self.form(head.headers["Accept"])
    let hosts = head.headers["Host"]
    host = hosts.count == 1 ? hosts[0].withoutOuterSpace : nil
    hasOrigin = head.headers.contains(name: "Origin")
    authorization = head.headers.first(name: "Authorization")?.withoutOuterSpace
    self.address = address
    self.local = local
  }

  private static func form(_ accept: [String]) -> Form {
    let types = accept.flatMap { $0.split(separator: ",") }.map {
      $0.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
    }
    return types.contains("text/html")
      ? .html : types.contains("application/json") ? .json : .text
  }

  /// What is wrong with the parameters of a path that takes `names`, each of them once and with a
  /// value; nil if nothing is.
  func wrongParameter(besides names: [String]) -> String? {
    var seen: Set<Substring> = []
    for (name, value) in parameters {
      let shown = PeerText(utf8: name.utf8.prefix(64))
      if name.isEmpty { return "a parameter has no name" }
      if !names.contains(where: { $0 == name }) { return "there is no parameter \(shown) here" }
      if value.isEmpty { return "the parameter \(shown) has no value" }
      if !seen.insert(name).inserted { return "the parameter \(shown) is there twice" }
    }
    return nil
  }

  /// The number that digits alone write; nil for any other text.
  static func number(_ text: Substring) -> UInt64? {
    text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? UInt64(text) : nil
  }
}

extension String {
  /// The value of a header without the spaces and tabs around it, which do not belong to it
  /// (RFC 9110, section 5.5).
  fileprivate var withoutOuterSpace: String {
    let space: [Unicode.Scalar] = [" ", "\t"]
    var value = unicodeScalars.drop { space.contains($0) }
    while let last = value.last, space.contains(last) { value.removeLast() }
    return String(value)
  }
}

/// Which `Host` a request may name.
struct HostRule {
  private let names: Set<String>

  init(_ configuration: OperationsConfiguration) {
    names = Set(
      ([configuration.host] + configuration.names).map { Self.unbracketed($0[...]).lowercased() })
  }

  /// Whether the value of the header `Host` is one that this port has; any port may follow.
  ///
  /// `local` is the address that was connected to. A page of somebody else that has made a browser
  /// connect there has done so with a name, and the browser sends that.
  func allows(_ host: String?, at local: SocketAddress?) -> Bool {
    guard let host, !host.isEmpty else { return false }
    var name = host[...]
    // The last colon of an IPv6 address is followed by a bracket, if it is not that of a port.
    if let colon = name.lastIndex(of: ":"), !name[colon...].contains("]") {
      guard name[name.index(after: colon)...].allSatisfy({ $0.isASCII && $0.isNumber }) else {
        return false
      }
      name = name[..<colon]
    }
    let plain = Self.unbracketed(name).lowercased()
    if Self.isLoopback(name) || names.contains(plain) { return true }
    guard let port = local?.port else { return false }
    return SocketAddress(literal: plain, port: port) == local
  }

  /// Whether a name or an address means this machine.
  static func isLoopback(_ name: some StringProtocol) -> Bool {
    if name.lowercased() == "localhost" { return true }
    return SocketAddress(literal: String(unbracketed(Substring(name))), port: 0)?.group?.isLoopback
      ?? false
  }

  private static func unbracketed(_ name: Substring) -> Substring {
    name.hasPrefix("[") && name.hasSuffix("]") ? name.dropFirst().dropLast() : name
  }
}
#endif
