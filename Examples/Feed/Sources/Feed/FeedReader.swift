// SPDX-License-Identifier: Apache-2.0

import FeedMessages
import LongLink
import LongLinkJSON

/// A feed as a sequence of nodes, each of which is there as soon as it has arrived.
struct FeedReader {
  let client: LongLinkClient

  /// Calls `show` for each node. Throws `FeedError` when the server has written an error behind the
  /// nodes, and the errors of the client and of the reader.
  func read(_ query: Query, show: (Node) -> Void) async throws {
    let stream = client.stream(Query.type, try JSONBody(query).encodedBytes())
    let document = DocumentReader(stream)
    do {
      for try await node in document.elements(named: "node", as: Node.self, error: "error") {
        show(node)
      }
    } catch let error as ReaderError where error.code == .errorElement {
      throw FeedError(code: error.element?["code"] ?? "", text: error.element?.text ?? "")
    }
  }
}

/// An error that is part of a feed.
struct FeedError: Error, Equatable, CustomStringConvertible {
  var code: String
  var text: String

  var description: String { "\(text) (error \(code))" }
}
