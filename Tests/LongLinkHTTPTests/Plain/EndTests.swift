// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import LongLinkReaders
import LongLinkTestSupport
import Testing

extension HTTPTests {
  /// All that has arrived is read before the end of the connection, at the reader's own pace.
  @Suite(.serialized, .timeLimit(.minutes(5))) struct EndTests {
    enum Framing: String, CaseIterable {
      case length, chunked, close, gzip
    }

    private static let count = 3000
    private static let xml = "<r>" + String(repeating: "<n>00000</n>", count: count)
    private static let json = "[" + String(repeating: "\"000000000\",", count: count)

    /// The beginning of a response, whose end never comes; with `close`, the end of the connection
    /// is its end.
    private static func response(_ body: String, _ framing: Framing) -> [UInt8] {
      let bytes = Array(body.utf8)
      let head = "HTTP/1.1 200 OK\r\nETag: \"v\"\r\n"
      let (fields, content): (String, [UInt8]) =
        switch framing {
        case .length: ("Content-Length: 9999999", bytes)
        case .chunked:
          (
            "Transfer-Encoding: chunked",
            Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10]
          )
        case .close: ("Connection: close", bytes)
        case .gzip: ("Content-Length: 9999999\r\nContent-Encoding: gzip", stored(bytes))
        }
      return Array("\(head)\(fields)\r\n\r\n".utf8) + content
    }

    /// A member of gzip with one block that is not compressed, and not the last.
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
      let length = UInt16(bytes.count)
      return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0]
        + [length, ~length].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } + bytes
    }

    /// Runs a body with a service, a URL whose response is cut, and what waits until both sides
    /// have ended the connection.
    private func withCut(
      _ text: String, _ framing: Framing,
      _ body: (HTTPService, String, _ ended: () async throws -> Void) async throws -> Void
    ) async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send(Self.response(text, framing))
      } body: { server in
        try await withService { service in
          try await body(service, server.url()) {
            try await until { server.connectionCount > 0 && server.openCount == 0 }
          }
        }
      }
    }

    @Test(arguments: Framing.allCases, [false, true])
    func `all bytes are read before the end`(framing: Framing, isLate: Bool) async throws {
      try await withCut(Self.xml, framing) { service, url, ended in
        let response = try await service.open(HTTPRequest(.get, url))
        if isLate { try await ended() }
        var bytes: [UInt8] = []
        do {
          for try await chunk in response.chunks {
            bytes += chunk
            if isLate { await Task.yield() }
          }
          #expect(framing == .close)
        } catch let error as LongLinkError {
          #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
        }
        #expect(bytes == Array(Self.xml.utf8))
      }
    }

    @Test(arguments: Framing.allCases, [false, true])
    func `all elements of a document are read before the end`(
      framing: Framing, isLate: Bool
    ) async throws {
      for isXML in [true, false] {
        try await withCut(isXML ? Self.xml : Self.json, framing) { service, url, ended in
          let response = try await service.open(HTTPRequest(.get, url))
          if isLate { try await ended() }
          var count = 0
          let reader = DocumentReader(response.chunks)
          await #expect(throws: (any Error).self) {
            if isXML {
              for try await _ in reader.elements(named: "n") { count += 1 }
            } else {
              for try await _ in reader.values(.path("[*]")) { count += 1 }
            }
          }
          #expect(count == Self.count)
        }
      }
    }

    @Test(arguments: [Framing.length, .chunked])
    func `a download keeps all that has arrived`(framing: Framing) async throws {
      try await withCut(Self.xml, framing) { service, url, _ in
        let path = FileManager.default.temporaryDirectory
          .appending(path: "longlink-end-\(UUID().uuidString)").path
        defer {
          for suffix in [".part", ".part.etag"] {
            try? FileManager.default.removeItem(atPath: path + suffix)
          }
        }
        await #expect(throws: HTTPDownloadError.self) {
          try await service.download(HTTPRequest(.get, url), to: path)
        }
        let part = try Data(contentsOf: URL(filePath: path + ".part"))
        #expect(part == Data(Self.xml.utf8))
      }
    }

    @Test func `the beginning of an error is read before the end`() async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send("HTTP/1.1 500 No\r\nContent-Length: 99999\r\n\r\n" + Self.xml)
      } body: { server in
        try await withService { service in
          let error = try await linkFailure {
            try await service.send(HTTPRequest(.get, server.url()))
          }
          #expect(error.response == 500 && error.body == Array(Self.xml.utf8))
        }
      }
    }

    @Test(.unless(Programs.nginxProblem))
    func `all bytes are read before the end of a stream of HTTP 2`() async throws {
      try await RawServer.run { connection in
        guard try await connection.request() != nil else { return }
        try await connection.send(Self.response(Self.xml, .length))
      } body: { server in
        try await Programs.withNginx(
          listen: "ssl http2",
          """
          ssl_certificate \(Programs.peerFile("server.pem"));
          ssl_certificate_key \(Programs.peerFile("server.key"));
          location / { proxy_pass \(server.url()); }
          """
        ) { port, _ in
          let tls = HTTPTLS(additionalRoots: [.file(Programs.peerFile("ca.pem"))])
          try await withService(HTTPConfiguration(tls: tls)) { service in
            let response = try await service.open(
              HTTPRequest(.get, "https://localhost:\(port)/"))
            try await until { server.openCount == 0 }
            var bytes: [UInt8] = []
            let error = try await linkFailure {
              for try await chunk in response.chunks { bytes += chunk }
            }
            #expect(error.code == .connectionLost, "\(error)")
            #expect(bytes == Array(Self.xml.utf8))
          }
        }
      }
    }
  }
}
#endif
