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
  /// The short link through nginx.
  @Suite(.timeLimit(.minutes(5)), .unless(Nginx.problem), .serialized) struct NginxTests {
    private static let streams = "proxy_buffering off; proxy_request_buffering off;"

    @Test func `whole requests pass an nginx that buffers`() async throws {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port) { nginx in
          let client = try stage.client(url: nginx.url)
          for size in [0, 1, 1_000, 20_000, 900_000] {
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            #expect(try await client.request(HTTPStage.echo, body) == body)
          }
          let response = try await client.sendItems(HTTPStage.sum, []) { writer in
            for _ in 0..<10 { try await writer.write([UInt8](repeating: 1, count: 50_000)) }
          }
          #expect(response == Array("500000".utf8))
          var items: [[UInt8]] = []
          for try await item in client.stream(HTTPStage.count, [100]) { items.append(item) }
          #expect(items == (0..<100).map { [UInt8($0)] })
        }
      }
    }

    @Test func `a server's items pass a default nginx one by one, since the answer says so`()
      async throws
    {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port) { nginx in
          let client = try stage.client(url: nginx.url)
          stage.begun.change { $0["step"] = 1 }
          var items: [[UInt8]] = []
          for try await item in client.stream(HTTPStage.steps, [5]) {
            items.append(item)
            stage.begun.change { $0["step", default: 0] += 1 }
          }
          #expect(items == [[1], [2], [3], [4], [5]])
        }
      }
    }

    @Test func `a client's items pass one by one where nginx does not buffer requests`()
      async throws
    {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port, Self.streams) { nginx in
          let client = try stage.client(url: nginx.url)
          let begun = stage.begun
          let response = try await client.sendItems(HTTPStage.sum, []) { writer in
            for count in 1...5 {
              try await writer.write([1])
              await begun.until { $0["summed"] == count }
            }
          }
          #expect(response == Array("5".utf8))
        }
      }
    }

    @Test func `a request that is too large for nginx was sent, and the error says what to do`()
      async throws
    {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port, "client_max_body_size 1m;") { nginx in
          let client = try stage.client(url: nginx.url)
          let error = await #expect(throws: LongLinkError.self) {
            _ = try await client.request(HTTPStage.echo, [UInt8](repeating: 1, count: 4_000_000))
          }
          #expect(error?.delivery == .sent)
          #expect(error?.detail.contains("413") == true, "\(String(describing: error))")
          #expect(error?.detail.contains("client_max_body_size") == true)
          #expect(stage.begun.value == [:])
        }
      }
    }

    @Test(arguments: [502, 503, 504])
    func `a status of nginx proves nothing`(_ status: Int) async throws {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port, "return \(status);") { nginx in
          let client = try stage.client(url: nginx.url)
          let error = await #expect(throws: LongLinkError.self) {
            _ = try await client.request(HTTPStage.echo, [1])
          }
          #expect(error?.code == .connectionLost)
          #expect(error?.delivery == .sent)
          #expect(error?.detail.contains("\(status)") == true, "\(String(describing: error))")
        }
      }
    }

    @Test func `a gateway that is gone is a status 502, and the request counts as sent`()
      async throws
    {
      try await HTTPStage.run { stage in
        let closed = try await RawPeer.listen { _ in }
        let port = closed.localAddress?.port ?? 0
        try await closed.close()
        try await Nginx.run(to: port) { nginx in
          let client = try stage.client(url: nginx.url)
          let error = await #expect(throws: LongLinkError.self) {
            _ = try await client.request(HTTPStage.echo, [1])
          }
          #expect(error?.delivery == .sent)
          #expect(error?.detail.contains("502") == true, "\(String(describing: error))")
        }
      }
    }

    @Test func `a cancel reaches the handler through nginx`() async throws {
      try await HTTPStage.run { stage in
        try await Nginx.run(to: stage.port, Self.streams) { nginx in
          let client = try stage.client(url: nginx.url)
          for try await _ in client.stream(HTTPStage.endless, []) { break }
          await stage.cancelled.until { $0 == 1 }
        }
      }
    }

    @Test func `the client's address comes from a trusted nginx alone`() async throws {
      for (trusted, expected) in [([], "127.0.0.1"), (["127.0.0.0/8"], "192.0.2.7")] {
        try await HTTPStage.run({ $0.trustedProxies = trusted }) { stage in
          try await Nginx.run(to: stage.port) { nginx in
            var options = HTTPWayOptions()
            options.headers = [("X-Forwarded-For", "192.0.2.7")]
            let client = try stage.client(url: nginx.url, options: options)
            let address = try await client.request(HTTPStage.address, [])
            #expect(String(decoding: address, as: UTF8.self) == expected)
          }
        }
      }
    }
  }
}
#endif
