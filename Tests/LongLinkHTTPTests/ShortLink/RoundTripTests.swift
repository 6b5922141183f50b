// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkHTTPServer
import LongLinkTestSupport
import NIOCore
import Testing

extension HTTPTests {
  /// The three kinds of requests, from a client through a gateway to the routes of a server.
  @Suite(.timeLimit(.minutes(5))) struct RoundTripTests {
    @Test func `a request and its response go over one POST`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        #expect(
          try await client.request(HTTPStage.echo, Array("hello".utf8)) == Array("hello".utf8))
        #expect(stage.gateway.counters.requests == 1)
        #expect(stage.begun.value == ["hello": 1])
      }
    }

    @Test func `connections are used again, one request after the other`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        for number in 0..<20 {
          #expect(try await client.request(HTTPStage.echo, [UInt8(number)]) == [UInt8(number)])
        }
        #expect(stage.gateway.counters.requests == 20)
        // A request may begin before the answer to the one before it has quite ended.
        #expect(stage.gateway.counters.connectionsAccepted < 10)
      }
    }

    @Test func `many requests run at the same time`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<50 {
            group.addTask {
              let body = [UInt8](repeating: UInt8(number), count: 1 + number * 1_000)
              let echo = try await client.request(HTTPStage.echo, body)
              #expect(echo == body)
            }
          }
          try await group.waitForAll()
        }
        #expect(stage.gateway.counters.requests == 50)
      }
    }

    @Test func `large bodies pass in both directions, however small the buffers`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let body = (0..<10_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        #expect(try await client.request(HTTPStage.echo, body) == body)
      }
    }

    @Test func `a rejection comes as it does over the long link`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let error = await #expect(throws: LongLinkError.self) {
          _ = try await client.request(HTTPStage.refuse, [])
        }
        #expect(error?.code == .rejected)
        #expect(error?.response?.rawValue == 1_234)
        #expect(error?.body == [9])
        #expect(error?.delivery == .answered)
      }
    }

    @Test func `items of the server arrive one by one, and the response behind them`() async throws
    {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let stream = client.stream(HTTPStage.steps, [3])
        var items: [[UInt8]] = []
        // Each item is asked for only when the one before it has arrived.
        stage.begun.change { $0["step"] = 1 }
        for try await item in stream {
          items.append(item)
          stage.begun.change { $0["step", default: 0] += 1 }
        }
        #expect(items == [[1], [2], [3]])
        #expect(stream.response == [])
      }
    }

    @Test func `items of the client arrive one by one, and then the response comes`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let begun = stage.begun
        let response = try await client.sendItems(HTTPStage.sum, []) { writer in
          var sum = 0
          for size in [1, 10, 100_000, 3_000_000] {
            try await writer.write([UInt8](repeating: 1, count: size))
            sum += size
            let expected = sum
            await begun.until { $0["summed"] == expected }
          }
        }
        #expect(String(decoding: response, as: UTF8.self) == "3100011")
      }
    }

    @Test func `a response may come before the client's items have ended`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let response = try await client.sendItems(HTTPStage.early, []) { writer in
          while true { try await writer.write([UInt8](repeating: 1, count: 1_000)) }
        }
        #expect(response == Array("enough".utf8))
      }
    }

    @Test func `a stream that is left is broken off, and its handler hears of it`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        for try await item in client.stream(HTTPStage.endless, []) {
          #expect(item.count == 10_000)
          break
        }
        await stage.cancelled.until { $0 == 1 }
        #expect(try await client.request(HTTPStage.echo, [1]) == [1])
      }
    }

    @Test func `a request that is cancelled reaches its handler as a cancel`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let task = Task { try await client.request(HTTPStage.hang, []) }
        await stage.begun.until { $0["hang"] == 1 }
        task.cancel()
        await stage.cancelled.until { $0 == 1 }
        let error = await #expect(throws: LongLinkError.self) { _ = try await task.value }
        #expect(error?.code == .cancelled)
        #expect(error?.delivery == .sent)
      }
    }

    @Test func `a stream in both directions fails at the client, unsent`() async throws {
      try await HTTPStage.run { stage in
        let client = try stage.client()
        let error = await #expect(throws: LongLinkError.self) {
          _ = try await client.exchange(HTTPStage.sum, []) { items, writer in
            try await writer.write([1])
            for try await _ in items {}
          }
        }
        #expect(error?.delivery == .notSent)
      }
    }

    @Test func `a way whose server never says a word of ours is left`() async throws {
      let portal = try await RawPeer.listen { peer in
        Task {
          await peer.hears("\r\n\r\n")
          peer.send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        }
      }
      let port = portal.localAddress?.port ?? 0
      try await HTTPStage.run { stage in
        let client = try stage.client {
          $0.ways = [
            try! .http(url: "http://127.0.0.1:\(port)/longlink/v1"), try! .http(url: stage.url),
          ]
        }
        var failures = 0
        for _ in 0..<20 {
          do throws(LongLinkError) {
            #expect(try await client.request(HTTPStage.echo, [5]) == [5])
            break
          } catch {
            #expect(error.delivery != .answered, "\(error)")
            failures += 1
          }
        }
        #expect(failures <= 3)
        #expect(stage.gateway.counters.requests == 1)
      }
      try await portal.close()
    }

    @Test func `where the long port is closed, requests go over HTTP`() async throws {
      try await HTTPStage.run { stage in
        // A port that nobody listens on.
        let closed = try await RawPeer.listen { _ in }
        let port = closed.localAddress?.port ?? 0
        try await closed.close()
        let client = try stage.client(longPort: port)
        #expect(try await client.request(HTTPStage.echo, [5]) == [5])
        #expect(stage.gateway.counters.requests == 1)
      }
    }
  }
}
#endif
