// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
internal import LongLinkCore

/// A server in a client's list, with its priority and weight.
///
/// A client uses one server at a time. At each connect it chooses among the available servers with
/// the lowest priority number, at random by weight. For the two usual lists there are `.inOrder`
/// and `.balanced`:
///
///     ClientConfiguration(servers: .balanced([first, second, third]))
public struct ServerEntry: Hashable, Sendable {
  /// The server's endpoint.
  public var endpoint: Endpoint
  /// The priority number of the server: servers with lower numbers are used first. Default 0.
  public var priority: Int
  /// The server's weight among the servers of its priority: clients choose in proportion to it.
  /// 1 to 1,000,000, which `ClientConfiguration.validate()` checks. Default 1.
  public var weight: Int

  /// Makes an entry for a server.
  public init(_ endpoint: Endpoint, priority: Int = 0, weight: Int = 1) {
    self.endpoint = endpoint
    self.priority = priority
    self.weight = weight
  }

  var entry: ServerList.Entry { ServerList.Entry(priority: priority, weight: weight) }

  /// Throws `invalidConfiguration` if a client could not use the list.
  static func validate(_ servers: [ServerEntry], field: String) throws(LongLinkError) {
    if servers.isEmpty { throw .configuration(field, "there are no servers") }
    for (index, server) in servers.enumerated() {
      try server.endpoint.validate(field: "\(field)[\(index)]", by: .client)
      if !(1...1_000_000).contains(server.weight) {
        throw .configuration(
          "\(field)[\(index)].weight", "\(server.weight) is not between 1 and 1,000,000")
      }
    }
  }
}

extension [ServerEntry] {
  /// Returns a list in order of preference: each client uses the first server that is available.
  ///
  /// When that server fails, clients go to the next one. They come back to a better one when it is
  /// available again: see `ReconnectPolicy.preferredRetry`.
  public static func inOrder(_ endpoints: [Endpoint]) -> [ServerEntry] {
    endpoints.enumerated().map { ServerEntry($1, priority: $0) }
  }

  /// Returns a list over which clients spread: whenever a client connects, it takes a server at
  /// random, all with the same chance.
  ///
  /// A client stays with its server until the connection ends. Then it draws again, but not a
  /// server that failed or drains, while others are available. For servers of different capacity,
  /// list ``ServerEntry`` values of one priority with weights instead.
  public static func balanced(_ endpoints: [Endpoint]) -> [ServerEntry] {
    endpoints.map { ServerEntry($0) }
  }
}
