// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
internal import LongLinkCore

/// A server in the list of a client: where it is, and when it is chosen.
public struct ServerEntry: Hashable, Sendable {
  /// Where it is reached.
  public var endpoint: Endpoint
  /// Servers with a lower number are used first. Default 0.
  public var priority: Int
  /// The share of this server's clients among the servers of its priority, 1 to 1,000,000.
  /// Default 1.
  public var weight: Int

  /// Makes an entry.
  public init(_ endpoint: Endpoint, priority: Int = 0, weight: Int = 1) {
    self.endpoint = endpoint
    self.priority = priority
    self.weight = weight
  }

  /// Entries whose priorities are their places in a list.
  static func ordered(_ endpoints: [Endpoint]) -> [ServerEntry] {
    endpoints.enumerated().map { ServerEntry($1, priority: $0) }
  }

  var entry: ServerList.Entry { ServerList.Entry(priority: priority, weight: weight) }

  /// Throws when a client could not use the list.
  static func validate(_ servers: [ServerEntry], field: String) throws(LongLinkError) {
    if servers.isEmpty { throw .configuration(field, "there are none") }
    for (index, server) in servers.enumerated() {
      try server.endpoint.validate(field: "\(field)[\(index)]", by: .client)
      if !(1...1_000_000).contains(server.weight) {
        throw .configuration(
          "\(field)[\(index)].weight", "\(server.weight) is not within 1 and 1,000,000")
      }
    }
  }
}
