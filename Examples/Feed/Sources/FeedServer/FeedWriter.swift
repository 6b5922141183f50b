// SPDX-License-Identifier: Apache-2.0

import FeedMessages
import Foundation
import LongLinkServer

/// Writes a feed, node by node.
enum FeedWriter {
  /// Registers the feed's handler.
  static func register(with server: LongLinkServer) {
    server.routeStream(Query.type, .responseItems) { request, _, writer in
      let query = try query(of: request.body)
      try await writer.write(bytes("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed>\n"))
      for number in stride(from: 1, through: query.count, by: 1) {
        if number > 1 { try await request.clock.sleep(for: .milliseconds(query.interval)) }
        // The nodes before are with the client already. So the error is part of the document.
        if let limit = query.failsAfter, number > limit {
          try await writer.write(bytes("<error code=\"5\">The camera has lost its network</error>"))
          return []
        }
        try await writer.write(element(Node(number: number, title: title(number))))
      }
      try await writer.write(bytes("</feed>\n"))
      return []
    }
  }

  private static func query(of body: [UInt8]) throws -> Query {
    guard let query = try? JSONDecoder().decode(Query.self, from: Data(body)), query.isValid else {
      throw Rejection(.malformed, "this is no query of the feed")
    }
    return query
  }

  private static func element(_ node: Node) throws -> [UInt8] {
    let json = String(decoding: try JSONEncoder().encode(node), as: UTF8.self)
    let text = json.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    return bytes("<node>\(text)</node>\n")
  }

  private static func title(_ number: Int) -> String {
    let subjects = ["Tide & wind", "Ships <arriving>", "Ferry to the islands", "Lights in the fog"]
    return subjects[(number - 1) % subjects.count]
  }

  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
}
