// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLink
import LongLinkDriver
import LongLinkHTTP
import LongLinkHTTPServer
import Logging
import LongLinkTestSupport
import NIOCore
import Synchronization
import Testing

extension HTTPTests {
  /// What may have happened to a request that failed over HTTP.
  @Suite(.timeLimit(.minutes(5))) struct DeliveryTests {
    private static let atOnce = RequestOptions(waitsForConnection: false)

    /// A request to a server that answers each POST with this text.
    private func failure(
      answering answer: String, after mark: String = "0\r\n\r\n"
    ) async throws -> (LongLinkError?, posts: Int) {
      let posts = Watched(0)
      let listener = try await RawPeer.listen { peer in
        Task {
          await peer.hears(mark)
          posts.change { $0 += 1 }
          peer.send(answer)
          peer.close()
        }
      }
      defer { listener.close(promise: nil) }
      let way = try Way.http(
        url: "http://127.0.0.1:\(listener.localAddress?.port ?? 0)/longlink/v1")
      var configuration = ClientConfiguration(ways: [way])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration)
      let error = await #expect(throws: LongLinkError.self) {
        _ = try await client.request(HTTPStage.echo, [1, 2, 3])
      }
      await client.close(within: .zero)
      return (error, posts.value)
    }

    @Test(arguments: [
      ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
      ("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "redirects"),
      ("HTTP/1.1 307 Again\r\nLocation: /longlink/v1\r\nContent-Length: 0\r\n\r\n", "307"),
      ("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "Authorization"),
      ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", "text/html"),
      ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "not application/vnd.longlink"),
      ("HTTP/1.1 503 \u{1B}[31m\u{7F}evil\r\nContent-Length: 0\r\n\r\n", "POST"),
      (
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.longlink\r\nContent-Length: 0\r\n\r\n", ""
      ),
      ("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.longlink\r\n\r\n", ""),
      (
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.longlink\r\n"
          + "Content-Encoding: gzip\r\n\r\n",
        "compressed"
      ),
      ("garbage\r\n\r\n", ""),
      ("", ""),
    ])
    func `an answer without a response was sent, once, and is told`(
      _ answer: String, _ detail: String
    ) async throws {
      let (error, posts) = try await failure(answering: answer)
      #expect(error?.delivery == .sent, "\(String(describing: error))")
      #expect(posts == 1)
      if detail == "POST" {
        #expect(
          error?.detail.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 } == true)
      } else {
        #expect(
          error?.detail.contains(detail) == true || detail.isEmpty, "\(String(describing: error))")
      }
    }

    @Test func `the wait that a gateway or proxy asks for is in the error`() async throws {
      let (error, _) = try await failure(
        answering: "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
      #expect(error?.delivery == .sent && error?.retryAfter == .seconds(7))
    }

    @Test func `a body of garbage in a good answer is a violation, and was sent`() async throws {
      let head = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.longlink\r\n"
      let (error, posts) = try await failure(
        answering: head + "Content-Length: 40\r\n\r\n" + String(repeating: "x", count: 40))
      #expect(error?.delivery == .sent)
      #expect(posts == 1)
    }

    @Test func `a port that nobody listens on leaves nothing sent`() async throws {
      let closed = try await RawPeer.listen { _ in }
      let port = closed.localAddress?.port ?? 0
      try await closed.close()
      for url in ["http://127.0.0.1:\(port)/longlink/v1", "http://nowhere.invalid/longlink/v1"] {
        var configuration = ClientConfiguration(ways: [try Way.http(url: url)])
        configuration.logger.logLevel = .critical
        let client = try LongLinkClient(configuration)
        let error = await #expect(throws: LongLinkError.self) {
          _ = try await client.request(HTTPStage.echo, [1], options: Self.atOnce)
        }
        #expect(error?.delivery == .notSent, "\(String(describing: error))")
        #expect(error?.code == .connectFailed)
        #expect(error?.detail.contains(url) == true, "\(String(describing: error))")
        await client.close(within: .zero)
      }
    }

    @Test func `a server without TLS leaves nothing sent`() async throws {
      let listener = try await RawPeer.listen { peer in
        Task {
          await peer.heard.until { !$0.bytes.isEmpty }
          peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
          peer.close()
        }
      }
      let url = "https://127.0.0.1:\(listener.localAddress?.port ?? 0)/longlink/v1"
      var configuration = ClientConfiguration(ways: [try Way.http(url: url)])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration)
      let error = await #expect(throws: LongLinkError.self) {
        _ = try await client.request(HTTPStage.echo, [1], options: Self.atOnce)
      }
      #expect(error?.delivery == .notSent, "\(String(describing: error))")
      #expect(error?.code == .securityFailed && error?.securityFailure?.code == .plainPeer)
      #expect(error?.detail.hasPrefix(url) == true, "\(String(describing: error))")
      await client.close(within: .zero)
      try await listener.close()
    }

    @Test(arguments: [true, false])
    func `a proxy that cuts at every hundredth byte leaves the truth`(_ cutsUp: Bool) async throws {
      try await HTTPStage.run { stage in
        // How much passes without a cut.
        let whole = try await CuttingRelay.start(to: stage.port)
        var client = try stage.client(url: "http://127.0.0.1:\(whole.port)/longlink/v1")
        let body = [UInt8](repeating: 65, count: 1_500)
        #expect(try await client.request(HTTPStage.echo, body) == body)
        await client.close(within: .zero)
        try await whole.stop()
        let length = cutsUp ? whole.passed.value.up : whole.passed.value.down
        #expect(length > 1_500)
        for cut in Array(stride(from: 0, to: length, by: 100)) + [length - 1] {
          let relay = try await CuttingRelay.start(
            to: stage.port, up: cutsUp ? cut : nil, down: cutsUp ? nil : cut)
          client = try stage.client(url: "http://127.0.0.1:\(relay.port)/longlink/v1")
          // Each request says its own number, and must not run twice, nor be refused.
          let name = String(format: cut, cutsUp)
          let body = Array(name.utf8) + [UInt8](repeating: 65, count: 1_500)
          let result = await Result { try await client.request(HTTPStage.echo, body) }
          let runs = stage.begun.value[String(decoding: body.prefix(40), as: UTF8.self)] ?? 0
          switch result {
          case .success(let echo):
            #expect(echo == body)
            #expect(runs == 1)
          case .failure(let error as LongLinkError):
            #expect(runs <= 1)
            #expect(error.delivery == .sent || error.delivery == .notSent && runs == 0, "\(error)")
          case .failure(let error):
            Issue.record(error)
          }
          await client.close(within: .zero)
          try await relay.stop()
        }
      }
    }

    @Test func `whole requests and items pass a proxy that drops the rest behind an answer`()
      async throws
    {
      try await HTTPStage.run { stage in
        for size in [1_000, 60_000, 900_000] {
          let relay = try await CuttingRelay.start(to: stage.port, dropsBehindAnswer: true)
          let client = try stage.client(url: "http://127.0.0.1:\(relay.port)/longlink/v1")
          let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
          #expect(try await client.request(HTTPStage.echo, body) == body)
          await client.close(within: .zero)
          try await relay.stop()
        }
        let relay = try await CuttingRelay.start(to: stage.port, dropsBehindAnswer: true)
        let client = try stage.client(url: "http://127.0.0.1:\(relay.port)/longlink/v1")
        let begun = stage.begun
        let response = try await client.sendItems(HTTPStage.sum, []) { writer in
          for count in 1...5 {
            try await writer.write([1])
            await begun.until { $0["summed"] == count }
          }
        }
        #expect(response == Array("5".utf8))
        try await relay.stop()
      }
    }

    @Test(arguments: ["413", "close", "cancel"])
    func `a request that a full connection holds back fails like any other`(
      how: String
    ) async throws {
      let peers = Watched<[RawPeer]>([])
      let listener = try await RawPeer.listen { peer in
        peers.change { $0.append(peer) }
      }
      let way = try Way.http(url: "http://127.0.0.1:\(listener.localAddress?.port ?? 0)/a")
      var configuration = ClientConfiguration(ways: [way])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration)
      let written = Watched(0)
      let task = Task {
        try await client.sendItems(HTTPStage.sum, []) { writer in
          while true {
            try await writer.write([UInt8](repeating: 1, count: 100_000))
            written.change { $0 += 1 }
          }
        }
      }
      let peer = try #require(await peers.until { !$0.isEmpty }.first)
      await peer.hears("\r\n\r\n")
      try await peer.channel.setOption(.autoRead, value: false).get()
      // Until the buffers of both systems are full, which only the passing of real time shows: a
      // write that has not returned yet may still find room.
      var before = -1
      while written.value != before {
        before = written.value
        try await Task.sleep(for: .milliseconds(150))
      }
      switch how {
      case "413": peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
      case "close": peer.close()
      default: task.cancel()
      }
      let error = try await linkFailure { try await task.value }
      #expect(error.delivery == .sent, "\(error)")
      peer.close()
      await client.close(within: .zero)
      try await listener.close()
    }
  }
}

extension String {
  /// 40 bytes that name a cut.
  fileprivate init(format cut: Int, _ isUp: Bool) {
    let name = "\(isUp ? "up" : "down") \(cut) "
    self = name + String(repeating: "-", count: 40 - name.utf8.count)
  }
}

extension Result where Failure == any Error {
  fileprivate init(_ body: () async throws -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
#endif
