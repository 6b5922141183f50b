// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer

/// Pushes to a user through all servers, because any of them can have a connection of that user.
struct Relay: Sendable {
  let server: LongLinkServer
  /// A client of each other server, with a credential whose principal has the role `server`.
  let others: [LongLinkClient]

  /// Sets the route of the other servers' requests, so call it before `start`.
  init(of server: LongLinkServer, to others: [LongLinkClient]) {
    (self.server, self.others) = (server, others)
    server.route(900, requires: .attribute("role", "server")) { request in
      let report = try await server.push(to: request.metadata["user"] ?? "", 7, request.body)
      return Array(String(report.queued).utf8)
    }
  }

  /// Returns to how many clients of the user the push is on its way. Counts none for a server that
  /// cannot be reached within two seconds.
  func push(to user: String, _ body: [UInt8]) async throws -> Int {
    let options = RequestOptions(
      timeout: .seconds(2), waitsForConnection: false, metadata: ["user": user])
    return try await withThrowingTaskGroup(of: Int.self) { group in
      for other in others {
        group.addTask {
          guard let reply = try? await other.request(900, body, options: options) else { return 0 }
          return Int(String(decoding: reply, as: UTF8.self)) ?? 0
        }
      }
      return try await group.reduce(server.push(to: user, 7, body).queued, +)
    }
  }
}
