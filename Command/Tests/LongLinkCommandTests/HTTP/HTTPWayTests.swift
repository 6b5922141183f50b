// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLinkTestSupport
import Testing

/// `longlink serve --http`, and the commands that go over HTTP.
@Suite struct HTTPWayTests {
  /// A server with a gateway; the second line says where that is.
  private struct Gateway {
    let server: RunningServer
    let url: String

    init(_ options: String...) async throws {
      try await self.init(options)
    }

    init(_ options: [String]) async throws {
      server = try await RunningServer(["--http", "0"] + options)
      let line = try #require(await server.tool.nextLine())
      let prefix = "http on 127.0.0.1:"
      try #require(line.hasPrefix(prefix))
      url = "http://127.0.0.1:\(line.dropFirst(prefix.count))/longlink/v1"
    }
  }

  @Test func `call and stream go over HTTP alone`() async throws {
    let gateway = try await Gateway()
    let call = try await Tool.run(
      "call", "1", "-", "--http", gateway.url, input: Array("hello".utf8))
    #expect(call.code == 0, "\(call.errors)")
    #expect(call.lines == ["hello"])
    let rejected = try await Tool.run("call", "99", "--http", gateway.url)
    #expect(rejected.code == 5)
    let count = try await Tool.run("stream", "6", "--hex", "0803", "--http", gateway.url)
    #expect(count.code == 0, "\(count.errors)")
    #expect(count.lines.count >= 3)
    let both = try await Tool.run("stream", "8", "--items", "--http", gateway.url)
    #expect(both.code != 0)
    #expect(both.errors.contains("one direction"))
  }

  @Test func `many calls run at the same time`() async throws {
    let gateway = try await Gateway()
    let call = try await Tool.run(
      "call", "1", "-", "--count", "50", "--in-flight", "8", "--http", gateway.url,
      input: Array("x".utf8))
    #expect(call.code == 0, "\(call.errors)")
    #expect(call.lines == Array(repeating: "x", count: 50))
  }

  @Test func `an answer without frames is 7, and no connection is 3`() async throws {
    let gateway = try await Gateway()
    let file = FileManager.default.temporaryDirectory
      .appending(component: "longlink-\(UUID().uuidString)")
    try Data("x".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let wrongPath = gateway.url.replacingOccurrences(of: "/longlink/v1", with: "/nothing")
    for command in [["call", "1"], ["stream", "6"], ["upload", file.path]] {
      let wrong = try await Tool(command + ["--http", wrongPath]).finish()
      // On a slow machine, the answer can come before the request is sent: nothing was lost then.
      let isUnsent = wrong.errors.contains("notSent")
      #expect(wrong.code == (isUnsent ? 3 : 7), "\(command): \(wrong.errors)")
      #expect(wrong.errors.contains("404"))
    }
    gateway.server.tool.send(SIGTERM)
    let end = await gateway.server.tool.finish()
    #expect(end.code == 0)
    for command in [["call", "1"], ["stream", "6"], ["upload", file.path]] {
      let none = try await Tool(command + ["--http", gateway.url]).finish()
      #expect(none.code == 3, "\(command): \(none.errors)")
    }
  }

  @Test func `wrong arguments are 64`() async throws {
    for arguments in [["--http", "nowhere"], ["--http", "http://a/b", "--port", "1"]] {
      let wrong = try await Tool(["call", "1"] + arguments).finish()
      #expect(wrong.code == 64, "\(arguments)")
    }
    let wrong = try await Tool.run("call", "1", "--http", "nowhere/longlink/v1")
    #expect(wrong.errors.contains("must begin with http:// or https://"), "\(wrong.errors)")
  }

  @Test func `a gateway's port that is in use is reported, and nothing before it`() async throws {
    let gateway = try await Gateway()
    let taken = try #require(
      gateway.url.split(separator: ":").last?.split(separator: "/").first.map(String.init))
    let second = try await Tool.run("serve", "--port", "0", "--http", taken)
    #expect(second.code == 1 && second.output.isEmpty, "\(second.errors)")
    #expect(second.errors.contains("Address already in use (EADDRINUSE)"), "\(second.errors)")
  }

  @Test func `a file of several megabytes is uploaded over HTTP`() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(component: "longlink-http-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(component: "photo")
    let bytes = Data((0..<3_500_000).map { UInt8(truncatingIfNeeded: $0 &* 13) })
    try bytes.write(to: file)
    let store = folder.appending(component: "store")
    let gateway = try await Gateway("--uploads", store.path)
    let upload = try await Tool.run("upload", file.path, "--http", gateway.url)
    #expect(upload.code == 0, "\(upload.errors)")
    let id = try #require(upload.lines.first)
    let stored = store.appending(component: id).appending(component: "photo")
    #expect(try Data(contentsOf: stored) == bytes)
  }

  @Test func `whom a certificate is required of cannot come over HTTP`() async throws {
    let trial = try await SecurityTests.Trial()
    let authority = trial.server + ["--tls-client-ca", trial["ca.pem"]]
    let required = try await Gateway(authority)
    let refused = try await Tool.run("call", "1", "--text", "x", "--http", required.url)
    #expect(refused.code == 9 && refused.errors.contains("certificate"), "\(refused.errors)")
    let requested = try await Gateway(authority + ["--tls-client-certificate", "request"])
    let allowed = try await Tool.run("call", "1", "--text", "x", "--http", requested.url)
    #expect(allowed.lines == ["x"], "\(allowed.errors)")
  }
}
#endif
