// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkTestSupport
import Testing

extension HTTPTests {
  /// The short link through Caddy, which drops the rest of a request once its answer has begun.
  @Suite(.timeLimit(.minutes(5)), .unless(Caddy.problem), .serialized) struct CaddyTests {
    @Test func `requests of all sizes and streams pass Caddy`() async throws {
      try await HTTPStage.run { stage in
        try await Caddy.run(to: stage.port) { caddy in
          let client = try stage.client(url: caddy.url)
          for size in [0, 1_000, 60_000, 200_000, 300_000, 600_000, 900_000, 900_000, 900_000] {
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            #expect(try await client.request(HTTPStage.echo, body) == body, "\(size)")
          }
          let response = try await client.sendItems(HTTPStage.sum, []) { writer in
            for _ in 0..<20 { try await writer.write([UInt8](repeating: 1, count: 50_000)) }
          }
          #expect(response == Array("1000000".utf8))
          var items: [[UInt8]] = []
          for try await item in client.stream(HTTPStage.count, [100]) { items.append(item) }
          #expect(items == (0..<100).map { [UInt8($0)] })
        }
      }
    }

    @Test func `a refusal reaches the client through Caddy`() async throws {
      try await HTTPStage.run { stage in
        try await Caddy.run(to: stage.port) { caddy in
          let url = caddy.url.replacing("/longlink/v1", with: "/other")
          let client = try stage.client(url: url)
          for size in [1_000, 200_000] {
            let error = await #expect(throws: LongLinkError.self) {
              _ = try await client.request(HTTPStage.echo, [UInt8](repeating: 1, count: size))
            }
            #expect(error?.detail.contains("404") == true, "\(String(describing: error))")
          }
        }
      }
    }
  }
}
#endif
