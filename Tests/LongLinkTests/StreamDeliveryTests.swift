// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
@testable import LongLinkDriver
import LongLinkServer
import LongLinkTransport
import Testing

/// What the error of a read or write says of a request that had not been sent when it failed.
@Suite struct StreamDeliveryTests {
  private static let ends: [(Outcome, Delivery)] = [
    (.failure(LongLinkError(.cancelled, delivery: .notSent, doing: .request(20))), .notSent),
    (.failure(LongLinkError(.cancelled, delivery: .sent, doing: .request(20))), .sent),
    (.success([]), .answered),
  ]

  @Test(arguments: ends.indices)
  func `a request that is sent before it is withdrawn is not called unsent`(
    _ index: Int
  ) async throws {
    let (outcome, delivery) = Self.ends[index]
    let loop = try EventLoop(name: "test")
    let steps = await loop.run { [loop] in
      let channel = ItemChannel(20, .responseItems, StreamOptions(), on: loop)
      var steps: [Delivery?] = []
      var settled: LongLinkError?
      channel.settle(LongLinkError(.deadlineExceeded, delivery: .notSent, doing: .request(20))) {
        settled = $0
      }
      steps.append(settled?.delivery)
      channel.ended(outcome)
      steps.append(settled?.delivery)
      return steps
    }
    #expect(steps == [nil, delivery])
    loop.shutDown()
  }

  @Test func `a writer that has ended its items does not call a request unsent that is sent`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.routeStream(20, .requestItems) { request, _, _ in
          try await request.clock.sleep(for: .seconds(1_000))
          return []
        }
      }
      let client = try stage.client(of: server)
      let error = try await failure {
        try await client.sendItems(20, []) { writer in
          writer.finish()
          let error = try await failure { try await writer.write([1]) }
          #expect(error.code == .streamEnded && error.delivery == .notSent)
          try await stage.until { await server.counters().requestsRunning == 1 }
          throw error
        }
      }
      #expect(error.code == .streamEnded && error.delivery == .sent)
    }
  }
}
