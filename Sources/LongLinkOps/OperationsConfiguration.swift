// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCLibrary
public import LongLinkCore
public import LongLinkDriver
internal import LongLinkTransport
public import Logging

/// The configuration of an operations port. Every field has a default.
public struct OperationsConfiguration: Sendable {
  /// The address to listen on, or `localhost`. Default `127.0.0.1`. An address that other machines
  /// can reach needs a `token`.
  ///
  /// The port speaks HTTP without encryption: put a proxy with TLS before it, unless the network is
  /// your own.
  public var host = "127.0.0.1"
  /// The port to listen on, 0 to 65,535; 0, the default, takes a free one.
  public var port = 0
  /// Names besides `host`, `localhost`, loopback addresses and the address that was connected to
  /// that the `Host` of a request may be, without a port. Default: none.
  ///
  /// Other requests are refused with 421, so that a web page cannot reach the port under a name of
  /// its own.
  public var names: [String] = []
  /// The secret that requests have to show, as `Authorization: Bearer` or as the password of
  /// `Basic`: 1 to 1,024 printable ASCII characters without spaces. Default nil: everyone who can
  /// connect is allowed everything.
  public var token: String?
  /// The names of methods for requests that have none of their own, because neither a generated
  /// service nor a route says it. In metrics, all others share the name `_OTHER`.
  public var methods: [MessageType: String] = [:]
  /// Whether the port tells the service manager that has started this process, such as systemd,
  /// when the server is ready, that its loops live, and when it begins to end. Default true.
  ///
  /// Without the variable `NOTIFY_SOCKET` in the environment there is nobody to tell.
  public var notifiesServiceManager = true
  /// Returns a variable of the environment in which a service manager says what it wants to hear.
  package var environment: @Sendable (String) -> String? = { name in
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
  /// The port's logger. Tokens are never logged. Default: a logger with the label `longlink.ops`.
  public var logger = Logger(label: "longlink.ops")

  /// Makes a configuration with the defaults.
  public init() {}

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    if !(0...65_535).contains(port) { throw .configuration("port", "\(port) is not a port") }
    if host.isEmpty { throw .configuration("host", "it is empty") }
    for (index, name) in names.enumerated() where name.isEmpty {
      throw .configuration("names[\(index)]", "it is empty")
    }
    guard let token else {
      guard HostRule.isLoopback(host) else {
        throw .configuration("token", "\(host) is not a loopback address, so it needs a token")
      }
      return
    }
    guard (1...1_024).contains(token.utf8.count), token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else {
      throw .configuration(
        "token", "it has to be 1 to 1,024 printable ASCII characters without spaces")
    }
  }
}
#endif
