// SPDX-License-Identifier: Apache-2.0

public import LongLinkJSON

/// What a client asks the feed for. The response is a stream of bytes: an XML document, `feed`, of
/// `node` elements, each with a `Node` as JSON.
public struct Query: Codable, Hashable, Sendable {
  /// The message type of the request.
  public static let type: MessageType = 20
  /// The most nodes in a feed.
  public static let mostNodes = 100_000

  /// The number of nodes, 0 to `mostNodes`.
  public var count: Int
  /// The time between two nodes, in milliseconds, 0 to 60,000.
  public var interval: Int
  /// The number of nodes after which the feed fails; nil for a feed that does not.
  public var failsAfter: Int?

  /// Makes a query.
  public init(count: Int, interval: Int, failsAfter: Int? = nil) {
    self.count = count
    self.interval = interval
    self.failsAfter = failsAfter
  }

  /// Whether all values are in range.
  public var isValid: Bool {
    (0...Query.mostNodes).contains(count) && (0...60_000).contains(interval)
      && failsAfter ?? 0 >= 0
  }
}

/// An entry of the feed.
public struct Node: Codable, Hashable, Sendable {
  /// 1, 2, 3 …
  public var number: Int
  /// The text that is shown.
  public var title: String

  /// Makes a node.
  public init(number: Int, title: String) {
    self.number = number
    self.title = title
  }
}
