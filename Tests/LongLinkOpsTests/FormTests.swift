// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkServer
import NIOCore
import Testing

@testable import LongLinkOps

/// Which pages there are, and in which forms.
@Suite struct FormTests {
  @Test(arguments: ["/", "/connections", "/connections?state=closed", "/exchanges"])
  func `a page has the form that a client accepts`(path: String) async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      _ = try await client.request(OpsStage.echo, [1])
      let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
      for (accept, type) in [
        (nil, "text/plain; charset=utf-8"), ("*/*", "text/plain; charset=utf-8"),
        ("application/json", "application/json"), (browser, "text/html; charset=utf-8"),
      ] {
        let reply = try await stage.request(path, accept: accept)
        #expect(reply.status == 200)
        #expect(reply.headers["content-type"] == type)
        #expect(reply.headers["cache-control"] == "no-store")
        #expect(reply.headers["x-content-type-options"] == "nosniff")
        #expect(!reply.body.isEmpty)
      }
    }
  }

  @Test func `a page for browsers loads nothing, runs nothing and refreshes itself`() async throws {
    try await OpsStage.run { stage in
      let reply = try await stage.request("/", accept: "text/html")
      let policy = try #require(reply.headers["content-security-policy"])
      #expect(policy.hasPrefix("default-src 'none'; style-src 'nonce-"))
      let nonce = try #require(policy.firstMatch(of: /'nonce-(\w+)'/)?.1)
      #expect(reply.body.contains("<style nonce=\"\(nonce)\">"))
      #expect(reply.body.contains("<meta http-equiv=\"refresh\" content=\"2\">"))
      #expect(reply.body.contains("width=device-width"))
      #expect(reply.body.contains("prefers-color-scheme: dark"))
      for text in ["<script", "src=", "http://", "https://", "@import", "url(", "style=\""] {
        #expect(!reply.body.contains(text), "\(text)")
      }
    }
  }

  @Test func `health and posts are JSON whatever is accepted`() async throws {
    try await OpsStage.run { stage in
      for path in ["/livez", "/readyz"] {
        let reply = try await stage.request(path, accept: "text/html")
        #expect(reply.headers["content-type"] == "application/json")
      }
      let reply = try await stage.send("POST", "/connections/99/drain", accept: "text/html")
      #expect(reply.status == 404)
      #expect(reply.headers["content-type"] == "application/json")
    }
  }

  @Test func `metrics may be cached and are sent in chunks`() async throws {
    try await OpsStage.run { stage in
      let reply = try await stage.request("/metrics")
      #expect(reply.status == 200)
      #expect(reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
      #expect(reply.headers["cache-control"] == nil)
      #expect(reply.headers["transfer-encoding"] == "chunked")
    }
  }

  @Test func `what is wrong with a request is said`() async throws {
    try await OpsStage.run { stage in
      for path in [
        "/nothing", "/connections/", "/connections/x", "/connections/1/x", "/connections/-1",
        "//", "/livez/", "http://localhost/livez", "/connections/1/drain/now", "/recordings",
      ] {
        let reply = try await stage.request(path)
        #expect(reply.status == 404, "\(path)")
      }
      #expect(try await stage.send("POST", "/recordings").status == 404)
      for (method, path, allowed) in [
        ("POST", "/", "GET, HEAD"), ("DELETE", "/connections/1", "GET, HEAD"),
        ("GET", "/connections/1/close", "POST"), ("PUT", "/connections/1/drain", "POST"),
        ("POST", "/metrics", "GET, HEAD"), ("OPTIONS", "/livez", "GET, HEAD"),
      ] {
        let reply = try await stage.send(method, path)
        #expect(reply.status == 405, "\(method) \(path)")
        #expect(reply.headers["allow"] == allowed)
      }
      let odd = try await stage.request("/connections?%1b%5b<b>=\u{7}")
      #expect(odd.status == 400 || odd.status == 404)
      #expect(!odd.body.contains("\u{7}"))
    }
  }

  @Test func `a wrong parameter is named`() async throws {
    try await OpsStage.run { stage in
      for (query, name) in [
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=x", "limit"), ("limit=+5", "limit"),
        ("limit=%35", "limit"), ("limit=1&limit=2", "limit"), ("limit", "limit"),
        ("after=-1", "after"), ("after=", "after"), ("after=-0", "after"), ("after=+5", "after"),
        ("after=18446744073709551616", "after"), ("state=ended", "state"), ("limits=3", "limits"),
        ("%61fter=1", "%61fter"), ("after=1&%0d%0a=1", "%0d%0a"), ("after=1&", "no name"),
        ("=1", "no name"), ("&&", "no name"),
      ] {
        let reply = try await stage.request("/connections?\(query)", accept: "application/json")
        #expect(reply.status == 400, "\(query)")
        #expect(reply.body.hasPrefix("{\"error\":") && reply.body.contains(name), "\(query)")
      }
      for path in ["/", "/livez", "/readyz", "/metrics", "/exchanges", "/connections/1"] {
        let reply = try await stage.request(path + "?verbose=1")
        #expect(reply.status == 400 && reply.body.contains("verbose"), "\(path)")
        let status = try await stage.request(path + "?").status
        #expect(status == (path == "/connections/1" ? 404 : 200), "\(path)")
      }
      let post = try await stage.send("POST", "/connections/1/close?now=1")
      #expect(post.status == 400 && post.body.contains("now"))
      #expect(try await stage.request("/connections/+1").status == 404)
    }
  }

  @Test func `what is wrong is said as JSON wherever the answer would be JSON`() async throws {
    try await OpsStage.run { stage in
      let json = "application/json"
      for reply in [
        try await stage.request("/livez", host: "evil.example"),
        try await stage.request("/connections", accept: json, host: "evil.example"),
        try await stage.send("DELETE", "/readyz"),
        try await stage.send("POST", "/livez"),
        try await stage.send("POST", "/connections/x/close"),
        try await stage.send("POST", "/connections/1/close", ["Origin: null"]),
        try await stage.send(
          "POST", "/connections/1/close", body: String(repeating: "x", count: 2_000)),
        try await stage.send("POST", "/connections/1/close", host: nil),
        try await stage.request("/livez?x=1"),
        try await stage.request("/nothing", accept: json),
        try await stage.send("DELETE", "/connections", accept: json),
        try await stage.send("GET", "/", accept: json, body: String(repeating: "x", count: 2_000)),
      ] {
        #expect(reply.status >= 400)
        #expect(reply.headers["content-type"] == json, "\(reply.status)")
        #expect(reply.body.hasPrefix("{\"error\":\"") && reply.body.hasSuffix("\"}\n"))
      }
      let text = try await stage.request("/connections", host: "evil.example")
      #expect(text.headers["content-type"] == "text/plain; charset=utf-8")
    }
  }

  @Test func `JSON has nothing that a terminal would obey`() {
    let name = "\u{1B}\u{7F}\u{9B}\u{85}\u{202E}\u{2066}\u{200E}\u{2028}\u{FEFF}\u{E0041}\"\u{E9}"
    let json = JSONText.of([name])
    #expect(
      json == #"["\u001b\u007f\u009b\u0085\u202e\u2066\u200e\u2028\ufeff\udb40\udc41\"é"]"#)
    #expect(JSONText.of(["a": "b"]) == #"{"a":"b"}"#)
  }

  @Test func `a page that is too long ends early, and says so`() {
    let text = (0..<2_000).map { "\($0) " + String(repeating: "é", count: 50) + "\n" }.joined()
    let short = PortAnswer.text(text)
    #expect((short.length ?? 0) <= 65_536)
    let next = short.pieces()
    var shown: [UInt8] = []
    while let piece = next() { shown += Array(piece.readableBytesView) }
    let lines = String(decoding: shown, as: UTF8.self).split(separator: "\n")
    #expect(text.hasPrefix(lines.dropLast().map { $0 + "\n" }.joined()))
    #expect(lines.last == "There is no room for \(2_000 - lines.count + 1) more lines.")
    #expect(PortAnswer.text("a\n").length == 2)

    var page = HTMLPage("Long")
    page.addTable(["a"], ["<tr></tr>"])
    #expect(!page.body.contains("room"))
    let rows = (0..<2_000).map { HTMLPage.row(["\($0)", String(repeating: "x", count: 60)]) }
    page.addTable(["a", "b"], rows)
    let count = page.body.matches(of: /<td>x/).count
    #expect(count > 500 && page.body.contains("There is no room for \(2_000 - count) more rows."))
    #expect((PortAnswer.html(page).length ?? .max) <= 65_536)
  }

  @Test func `an overview of many methods has the most used, and says how many others there are`()
    async throws
  {
    let names = (0..<40).map { String(repeating: "m", count: 3_000) + "\($0)" }
    let methods = names.enumerated().map { (MessageType(integerLiteral: 500 + UInt32($0)), $1) }
    try await OpsStage.run {
      $0.methods = Dictionary(uniqueKeysWithValues: methods)
    } _: { stage in
      let client = try await stage.client()
      for (type, _) in methods { _ = try? await client.request(type, []) }
      for accept in ["text/html", "text/plain", "application/json"] {
        for path in ["/", "/exchanges"] {
          let reply = try await stage.request(path, accept: accept)
          #expect(reply.status == 200 && reply.body.utf8.count <= 65_536, "\(path) \(accept)")
          #expect(
            reply.body.contains(
              accept == "application/json" ? "\"left_out\":" : "There is no room"),
            "\(path) \(accept)")
        }
      }
    }
  }

  @Test func `a HEAD has the head of the answer alone`() async throws {
    try await OpsStage.run { stage in
      let whole = try await stage.request("/livez")
      let head = try await stage.send("HEAD", "/livez")
      #expect(head.status == 200)
      #expect(head.body.isEmpty)
      #expect(head.headers["content-type"] == whole.headers["content-type"])
      let peer = try await RawPeer.connect(to: stage.port)
      for path in ["/metrics", "/livez"] {
        peer.send("HEAD \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      }
      peer.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      let text = await peer.hearsEnd()
      // Behind the end of one head begins the next.
      #expect(text.components(separatedBy: "\r\n\r\nHTTP/1.1 200").count == 3)
      #expect(!text.contains("\r\n0\r\n"))
    }
  }

  @Test func `requests on one connection are answered in order`() async throws {
    try await OpsStage.run { stage in
      let peer = try await RawPeer.connect(to: stage.port)
      let get = "Host: localhost\r\n\r\n"
      peer.send("GET /readyz HTTP/1.1\r\n\(get)GET /nothing HTTP/1.1\r\n\(get)")
      peer.send("GET /livez HTTP/1.1\r\n\(get)")
      let text = await peer.hears("\"live\":true")
      let order = text.matches(of: /HTTP\/1.1 (\d+)/).map { String($0.1) }
      #expect(order == ["200", "404", "200"])
      peer.close()
    }
  }

  @Test func `a client that says it sends nothing more gets its answers, and the end`() async throws
  {
    try await OpsStage.run { stage in
      for path in ["/livez", "/metrics", "/", "/nothing"] {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        peer.endOutput()
        #expect(PortReply(await peer.hearsEnd())?.status == (path == "/nothing" ? 404 : 200))
      }
      let many = try await RawPeer.connect(to: stage.port)
      many.send(String(repeating: "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 300))
      many.endOutput()
      #expect(await many.hearsEnd().components(separatedBy: "HTTP/1.1 404").count == 301)
      let half = try await RawPeer.connect(to: stage.port)
      half.send("GET /livez HTTP/1.1\r\nHost: local")
      half.endOutput()
      #expect(await !half.hearsEnd().contains("200"))
    }
  }

  @Test func `a client that wants another protocol gets an answer in this one, and the end`()
    async throws
  {
    try await OpsStage.run { stage in
      for (line, headers, status) in [
        ("CONNECT localhost:1", "", 501), ("CONNECT /livez", "", 501),
        ("GET /livez", "Connection: upgrade\r\nUpgrade: h2c\r\n", 200),
        ("GET /livez", "Connection: upgrade\r\nUpgrade: websocket\r\n", 200),
        ("GET /livez", "Upgrade: websocket\r\n", 200),
      ] {
        let peer = try await RawPeer.connect(to: stage.port)
        peer.send("\(line) HTTP/1.1\r\nHost: localhost\r\n\(headers)\r\n")
        let reply = PortReply(await peer.hearsEnd())
        #expect(reply?.status == status, "\(line) \(headers)")
        #expect(reply?.headers["connection"] == "close", "\(line) \(headers)")
      }
    }
  }

  @Test func `an old client gets its answer and the end`() async throws {
    try await OpsStage.run { stage in
      let peer = try await RawPeer.connect(to: stage.port)
      peer.send("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
      let text = await peer.hearsEnd()
      #expect(text.contains("longlink_connections{state=\"open\"} 0\n"))
      #expect(!text.contains("chunked"))
    }
  }
}
#endif
