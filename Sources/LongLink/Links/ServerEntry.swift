// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
internal import LongLinkCore

/// A server in a client's list, with its priority and weight.
public struct ServerEntry: Hashable, Sendable {
  /// The server's endpoint.
  public var endpoint: Endpoint
  /// Servers with lower numbers are used first. Default 0.
  public var priority: Int
  /// The server's weight among the servers of its priority: clients choose in proportion to it.
  /// 1 to 1,000,000. Default 1.
  public var weight: Int

  /// Makes an entry.
  public init(_ endpoint: Endpoint, priority: Int = 0, weight: Int = 1) {
    self.endpoint = endpoint
    self.priority = priority
    self.weight = weight
  }

  /// Makes entries whose priorities are their indices in a list.
  static func ordered(_ endpoints: [Endpoint]) -> [ServerEntry] {
    endpoints.enumerated().map { ServerEntry($1, priority: $0) }
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
