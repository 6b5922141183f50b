// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// At most a number of requests of each principal at a time: the example of the documentation.
private final class PrincipalLimit: Sendable {
  private let running = Mutex<[String: Int]>([:])
  private let most: Int

  init(_ most: Int) { self.most = most }

  func enter(_ name: String) -> Bool {
    running.withLock { running in
      guard running[name, default: 0] < most else { return false }
      running[name, default: 0] += 1
      return true
    }
  }

  func leave(_ name: String) {
    running.withLock { running in
      let left = running[name, default: 1] - 1
      running[name] = left > 0 ? left : nil
    }
  }
}

@Suite struct PrincipalLimitTests {
  @Test func `an interceptor limits the requests of each principal, over all of its connections`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let latch = Latch()
      let server = try await stage.serve(setUp: { server in
        // Each pair of connections is one principal's.
        server.onConnect { peer in
          peer.identified(as: Principal("p\((peer.id - 1) / 2)").record, security: nil)
        }
        let limit = PrincipalLimit(2)
        server.intercept { request, next in
          let name = try request.principal.name
          guard limit.enter(name) else {
            throw Rejection(.overloaded, "too many requests at once", retryAfter: .seconds(1))
          }
          defer { limit.leave(name) }
          return try await next(request)
        }
        server.route(.echo) { $0.body }
        server.route(.hang) { request in
          await latch.wait()
          return request.body
        }
      })
      var clients: [LongLinkClient] = []
      for _ in 0..<3 {
        let client = try stage.client(of: server)
        try await client.connect()
        clients.append(client)
      }
      let held = [clients[0].submit(.hang, [0]), clients[1].submit(.hang, [1])]
      try await stage.until { await server.counters().requestsRunning == 2 }
      for client in clients.prefix(2) {
        let error = try await failure { try await client.request(.echo, [7]) }
        #expect(error.response == .overloaded && error.delivery == .answered)
        #expect(error.retryAfter == .seconds(1))
      }
      // Another principal is not concerned.
      try await clients[2].expectEcho([7])
      latch.open()
      for (index, request) in held.enumerated() {
        #expect(try await request.value == [UInt8(index)])
      }
      try await clients[0].expectEcho([7])
    }
  }
}
