// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkDriver
import LongLinkHTTP
import LongLinkTestSupport
import Testing

extension HTTPTests {
  /// What the options of a service change.
  @Suite(.serialized) struct OptionTests {
    @Test(arguments: [(100, false), (2000, true)])
    func `a body may be so many times larger than its compressed bytes`(
      _ limit: Int, _ isRead: Bool
    ) async throws {
      let body = GzipSamples.bomb
      try await RawServer.run { connection in
        while try await connection.request() != nil {
          try await connection.send(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n")
          try await connection.send(body)
        }
      } body: { server in
        try await withService(HTTPConfiguration(maxInflation: limit)) { service in
          let request = HTTPRequest(.get, server.url())
          if isRead {
            #expect(try await service.send(request).body.count == 10 << 20)
          } else {
            let error = try await linkFailure { try await service.send(request) }
            #expect(error.code == .corrupted && error.detail.contains("maxInflation"), "\(error)")
          }
        }
      }
    }

    @Test func `a bound of a response below zero is an error, and zero is one`() async throws {
      try await RawServer.answering { _ in
        http("200 OK", [], "x")
      } body: { server in
        try await withService { service in
          var request = HTTPRequest(.get, server.url())
          request.maxResponseBytes = -1
          let negative = try await linkFailure { try await service.send(request) }
          #expect(negative.code == .encodingFailed && negative.delivery == .notSent, "\(negative)")
          #expect(negative.detail.contains("`maxResponseBytes` is -1"), "\(negative)")
          request.maxResponseBytes = 0
          let zero = try await linkFailure { try await service.send(request) }
          #expect(zero.code == .tooLarge, "\(zero)")
          #expect(server.received.count == 1)
        }
      }
    }

    @Test(arguments: [2, 12])
    func `a server gets so many connections, and further requests wait for one`(
      _ limit: Int
    ) async throws {
      let asking = Watched(0)
      try await RawServer.run { connection in
        while try await connection.request() != nil {
          asking.change { $0 += 1 }
          // The first answer comes when all connections ask.
          await asking.until { $0 >= limit }
          try await connection.send(http("200 OK"))
        }
      } body: { server in
        try await withService(HTTPConfiguration(connectionsPerServer: limit)) { service in
          let url = server.url()
          try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 {
              group.addTask { try await service.succeed(HTTPRequest(.get, url)) }
            }
            try await group.waitForAll()
          }
        }
        #expect(server.received.count == 40)
        #expect(server.connectionCount == limit)
      }
    }

    @Test func `a connection without a request is closed after its time`() async throws {
      try await RawServer.answering { _ in
        http("200 OK")
      } body: { server in
        let configuration = HTTPConfiguration(connectionIdleTimeout: .milliseconds(50))
        try await withService(configuration) { service in
          try await service.succeed(HTTPRequest(.get, server.url()))
          try await until { server.openCount == 0 }
          try await service.succeed(HTTPRequest(.get, server.url()))
          #expect(server.connectionCount == 2)
        }
      }
    }
  }
}
#endif
