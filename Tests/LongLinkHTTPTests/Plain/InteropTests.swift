// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import LongLinkJSON
import LongLinkTestSupport
import LongLinkUploadMessages
import LongLinkUploads
import Testing

extension HTTPTests {
  /// Servers that nobody here wrote: Python's, Apache, and nginx in between.
  @Suite(.serialized, .timeLimit(.minutes(3))) struct InteropTests {
    /// A part of a form as Python's parser has read it.
    struct Part: Codable, Equatable {
      var name: String
      var file: String?
      var type: String
      var size: Int
      var sha256: String
      var defects: [String]
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
      bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    @Test(.unless(Programs.pythonProblem))
    func `Digest with SHA-256 is what Python computes`() async throws {
      try await Programs.withPython { port in
        try await withService { service in
          let credentials = HTTPCredentials(user: "Mufasa \"M\"", password: "Circle of Life")
          var bodies: [String] = []
          for index in 0..<7 {
            var request = HTTPRequest(
              index % 2 == 0 ? .get : .post, "http://127.0.0.1:\(port)/digest/ä%20b?c=\(index)&d")
            request.authentication = .challenged(credentials)
            if index % 2 == 1 { request.body = .form([("a", "b")]) }
            bodies.append(String(decoding: try await service.send(request).body, as: UTF8.self))
          }
          // Each nonce is good for three, and is then called stale.
          #expect(bodies.map { String($0.suffix(1)) } == ["1", "2", "3", "1", "2", "3", "1"])
          #expect(service.counters.challenges == 3)
          #expect(bodies.allSatisfy { $0.hasPrefix("in 0000000") })
          var wrong = HTTPRequest(.get, "http://127.0.0.1:\(port)/digest")
          wrong.authentication = .digest(user: "Mufasa \"M\"", password: "no")
          let error = try await linkFailure { try await service.send(wrong) }
          #expect(error.response == 401)
        }
      }
    }

    @Test(.unless(Programs.apacheProblem), arguments: [false, true])
    func `Digest with MD5 is what Apache computes`(replayable: Bool) async throws {
      try await Programs.withApache(["authn_file", "authz_user", "auth_digest"]) { folder in
        let hash = MD5Digest.hash(of: Array("me:the realm:open \"it\"".utf8)) ?? []
        try "me:the realm:\(hexadecimal(hash))\n".write(
          toFile: folder + "/users", atomically: true, encoding: .utf8)
        try "inside".write(toFile: folder + "/page", atomically: true, encoding: .utf8)
        return """
          <Location "/">
            AuthType Digest
            AuthName "the realm"
            AuthUserFile "\(folder)/users"
            Require valid-user
          </Location>
          """
      } body: { port, _ in
        try await withService { service in
          let credentials = HTTPCredentials(user: "me", password: "open \"it\"")
          for index in 0..<5 {
            var request = HTTPRequest(.get, "http://127.0.0.1:\(port)/page?x=\(index)")
            request.authentication = .challenged(credentials)
            if !replayable {
              request.method = .post
              request.body = .content(
                .bytes([UInt8](repeating: 1, count: 100_000)), contentType: "a/b")
              request.body.isReplayable = false
            }
            let reply = try await service.send(request)
            #expect(String(decoding: reply.body, as: UTF8.self) == "inside")
          }
          #expect(service.counters.challenges == 1)
        }
      }
    }

    @Test(.unless(Programs.pythonProblem ?? Programs.nginxProblem), arguments: [false, true])
    func `a form is read by Python's parser, also through nginx`(throughNginx: Bool) async throws {
      try await Programs.withPython { python in
        guard throughNginx else { return try await sendForm(to: python) }
        try await Programs.withNginx("location / { proxy_pass http://127.0.0.1:\(python); }") {
          port, _ in
          try await sendForm(to: port)
        }
      }
    }

    private func sendForm(to port: Int) async throws {
      let file = FileManager.default.temporaryDirectory
        .appending(path: "longlink-\(UUID().uuidString).png")
      let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 9) }
      try Data(bytes).write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      try await withService { service in
        for knowsLength in [true, false] {
          var request = HTTPRequest(.post, "http://127.0.0.1:\(port)/form")
          request.timeout = .seconds(60)
          let text = Array("--not the boundary\r\n".utf8)
          request.body = .multipart(
            [
              .field("title", "Hafen bei Nacht\r\n--"), .field("quote \"x\"", ""),
              .file("photo", at: file.path, fileName: "Bild \"1\".png"),
              UploadPart(
                "text", fileName: "t.txt",
                .sequence(length: knowsLength ? UInt64(text.count) : nil) { offset in
                  AsyncStream { continuation in
                    continuation.yield(Array(text.dropFirst(Int(offset))))
                    continuation.finish()
                  }
                }),
            ])
          let reply = try await service.send(request)
          let parts = try JSONDecoder().decode([Part].self, from: Data(reply.body))
          #expect(parts.map(\.name) == ["title", "quote %22x%22", "photo", "text"])
          #expect(parts.map(\.file) == [nil, nil, "Bild %221%22.png", "t.txt"])
          #expect(parts.map(\.type) == ["text/plain", "text/plain", "image/png", "text/plain"])
          #expect(parts.map(\.size) == [19, 0, 3_000_000, text.count])
          #expect(parts[2].sha256 == hexadecimal(SHA256Digest.hash(of: bytes)))
          #expect(parts.allSatisfy { $0.defects.isEmpty })
        }
      }
    }
  }
}
#endif
