// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting

/// What a server's hooks were called with.
struct ToldClients: Sendable {
  let events = Tally<String>()

  func setUp(_ server: LongLinkServer) {
    server.onConnect { events.add("client \($0.id)") }
    server.onDisconnect { events.add("client \($0.id) left") }
    server.onConnectionOpened { events.add("connection \($0.connectionID) of \($0.id)") }
    server.onConnectionEnded { events.add("connection \($0.connectionID) of \($0.id) ended") }
    server.route(.echo) { $0.body }
    server.routeStream(9, .responseItems) { request, _, writer in
      while true {
        try await writer.write([1])
        try await request.clock.sleep(for: .seconds(1))
      }
    }
  }

  func count(_ event: String) -> Int { events.elements.count { $0 == event } }
}

extension LongLinkClient {
  /// Keeps a stream open, which keeps the connection on which it was opened.
  func watch(in stage: Stage) -> Task<Void, any Error> {
    stage.spawn { for try await _ in self.stream(9, []) {} }
  }
}
