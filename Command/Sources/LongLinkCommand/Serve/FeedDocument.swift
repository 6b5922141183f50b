// SPDX-License-Identifier: Apache-2.0

import LongLinkDemoMessages

/// The document of the route Feed, node by node.
struct FeedDocument {
  enum Format: String {
    case xml
    case json
  }

  private let format: Format
  /// How many nodes there are.
  private let nodes: UInt32
  /// Whether the document breaks off after them.
  private let breaksOff: Bool
  /// The number of nodes that were returned.
  private var node: UInt32 = 0
  private(set) var isAtEnd = false

  init(_ format: Format, _ request: FeedRequest) {
    self.format = format
    breaksOff = request.failAfter > 0 && request.failAfter <= request.nodes
    nodes = breaksOff ? request.failAfter : request.nodes
  }

  /// The next node, with what is between it and the one before; the last text is the end of the
  /// document. Nil after it.
  mutating func next() -> String? {
    guard !isAtEnd else { return nil }
    let isFirst = node == 0
    guard node < nodes else {
      isAtEnd = true
      return (isFirst ? start : "") + (breaksOff ? failure : end)
    }
    node += 1
    let object = #"{"name":"café \#(node)"}"#
    return switch format {
    case .xml: (isFirst ? start : "") + "<node>\(object)</node>"
    case .json: (isFirst ? start : ",") + object
    }
  }

  private var start: String {
    switch format {
    case .xml: "<root>"
    case .json: "["
    }
  }

  private var end: String {
    switch format {
    case .xml: "</root>"
    case .json: "]"
    }
  }

  private var failure: String {
    switch format {
    case .xml: "<error>the feed has failed</error>"
    case .json: #",{"error":"the feed has failed"}"#
    }
  }
}
