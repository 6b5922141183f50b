// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkDriver
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import NIOCore
import Testing

@testable import LongLinkOps

/// Who may ask the port, and under which names.
@Suite struct AccessTests {
  @Test func `a request names a host that the port has`() async throws {
    try await OpsStage.run {
      $0.names = ["ops.example"]
    } _: { stage in
      for host in [
        "localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9001", "127.9.9.9", "[::1]",
        "[::1]:9001", "ops.example", "Ops.Example:80", "localhost ", "\t localhost\t",
      ] {
        #expect(try await stage.request("/livez", host: host).status == 200, "\(host)")
      }
      for host in [
        nil, "", "evil.example", "localhost.evil.example", "10.0.0.1", "localhost:x",
        "localhost:1:2",
        "[::2]", "127.0.0.1.evil.example", "localhost, evil.example", "ops.example.",
        "user@localhost",
      ] {
        #expect(try await stage.request("/livez", host: host).status == 421, "\(host ?? "none")")
      }
      let twice = try await stage.request("/livez", ["Host: evil.example"])
      #expect(twice.status != 200)
    }
  }

  @Test func `the address that was connected to is a name of the port`() throws {
    var configuration = OperationsConfiguration()
    (configuration.host, configuration.token) = ("0.0.0.0", "secret")
    let rule = HostRule(configuration)
    for (local, host, other) in [
      ("192.0.2.7", "192.0.2.7", "192.0.2.8"), ("2001:db8::7", "[2001:db8::7]", "[2001:db8::8]"),
      ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.8"),
    ] {
      let local = OperationsPort.address(local, 9001)
      #expect(rule.allows(host, at: local) && rule.allows("\(host):80", at: local))
      #expect(!rule.allows(other, at: local) && !rule.allows("evil.example", at: local))
      #expect(!rule.allows(host, at: nil))
    }
  }

  @Test func `a post with an origin does nothing`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      let page: ConnectionPage = try await stage.json("/connections")
      let id = try #require(page.connections.first?.id)
      for origin in ["http://localhost:\(stage.port)", "null", "https://evil.example", ""] {
        let reply = try await stage.send("POST", "/connections/\(id)/close", ["Origin: \(origin)"])
        #expect(reply.status == 403)
      }
      _ = try await client.request(OpsStage.echo, [1])
      let later: ConnectionPage.Row = try await stage.json("/connections/\(id)")
      #expect(later.state == "open")
      // A page of this origin may read.
      let reply = try await stage.request("/livez", ["Origin: http://localhost"])
      #expect(reply.status == 200)
    }
  }

  @Test func `without the token only health is told, in a word`() async throws {
    try await OpsStage.run {
      $0.token = "secret"
    } _: { stage in
      for path in ["/", "/metrics", "/connections", "/exchanges", "/nothing"] {
        let reply = try await stage.request(path)
        #expect(reply.status == 401)
        let challenge = try #require(reply.headers["www-authenticate"])
        #expect(challenge.contains("Bearer") && challenge.contains("Basic"))
      }
      #expect(try await stage.send("POST", "/connections/1/close").status == 401)
      #expect(try await stage.request("/livez").body == "{\"live\":true}\n")
      #expect(try await stage.request("/readyz").body == "{\"ready\":true}\n")
    }
  }

  @Test func `the token opens all, also as a password`() async throws {
    try await OpsStage.run {
      $0.token = "secret"
    } _: { stage in
      // "anyone:secret" and ":secret".
      for value in [
        "Bearer secret", "bearer secret", "Basic YW55b25lOnNlY3JldA==", "basic OnNlY3JldA==",
        "Bearer secret ", "Bearer\t secret \t", "\tBasic  OnNlY3JldA== ",
      ] {
        let reply = try await stage.request("/livez", ["Authorization: \(value)"])
        #expect(reply.status == 200, "\(value)")
        #expect(reply.body.contains("\"loops\""))
      }
      for value in [
        "Bearer secre", "Bearer secret2", "Bearer", "secret", "Basic secret", "Basic c2VjcmV0",
        "Digest secret",
      ] {
        let reply = try await stage.request("/livez", ["Authorization: \(value)"])
        #expect(reply.status == 401, "\(value)")
      }
    }
  }

  @Test func `an address that guesses has to wait`() async throws {
    let lines = LogLines()
    try await OpsStage.run {
      $0.token = "secret"
      $0.logger = lines.logger
    } _: { stage in
      for _ in 0..<10 {
        let reply = try await stage.request("/metrics", ["Authorization: Bearer guess-1"])
        #expect(reply.status == 401)
      }
      for token in ["guess-2", "secret"] {
        let reply = try await stage.request("/metrics", ["Authorization: Bearer \(token)"])
        #expect(reply.status == 429)
        let seconds = try #require(reply.headers["retry-after"].flatMap { Int($0) })
        #expect((1...60).contains(seconds))
      }
      // Whoever shows none is not stopped.
      #expect(try await stage.request("/livez").status == 200)
      #expect(try await stage.request("/metrics").status == 401)
    }
    let text = lines.all.map { "\($0.message) \($0.metadata)" }.joined()
    #expect(text.contains("wrong token"))
    #expect(!text.contains("guess") && !text.contains("secret"))
  }

  @Test func `others are not affected by an address that guesses, and its time ends`() {
    var tokens = TokenGuard("secret")
    let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    let (one, other) = (SocketAddress.Group.ipv4(1), SocketAddress.Group.ipv4(2))
    for second in 0..<10 {
      let verdict = tokens.judge("Bearer no", from: one, at: start + .seconds(Int64(second)))
      #expect(verdict == .wrong)
    }
    let now = start + .seconds(20)
    #expect(tokens.judge("Bearer secret", from: one, at: now) == .throttled(seconds: 40))
    #expect(tokens.judge("Bearer secret", from: other, at: now) == .right)
    #expect(tokens.judge(nil, from: one, at: now) == .missing)
    #expect(tokens.judge("Bearer secret", from: one, at: start + .seconds(60)) == .right)
    // The next nine are still within a minute.
    #expect(tokens.judge("Bearer no", from: one, at: start + .seconds(60)) == .wrong)
    #expect(
      tokens.judge("Bearer secret", from: one, at: start + .seconds(60)) == .throttled(seconds: 1))
  }

  @Test func `all addresses of this machine are one`() {
    var tokens = TokenGuard("secret")
    let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    for number in 1...10 {
      let group = SocketAddress.Group.ipv4(127 << 24 | UInt32(number))
      #expect(tokens.judge("Bearer no", from: group, at: now) == .wrong)
    }
    for group in [SocketAddress.Group.ipv4(127 << 24 | 11), .ipv6Loopback] {
      #expect(tokens.judge("Bearer secret", from: group, at: now) == .throttled(seconds: 60))
    }
    #expect(tokens.judge("Bearer secret", from: .ipv4(10 << 24 | 1), at: now) == .right)
  }

  @Test func `many addresses that guess take little memory, and do not free one that waits`() {
    var tokens = TokenGuard("secret")
    let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    func isThrottled(_ number: UInt32, at now: NIODeadline) -> Bool {
      if case .throttled = tokens.judge("Bearer secret", from: .ipv4(number), at: now) {
        return true
      }
      return false
    }
    for _ in 0..<10 { _ = tokens.judge("Bearer no", from: .ipv4(0), at: start) }
    for _ in 0..<9 { _ = tokens.judge("Bearer no", from: .ipv4(1), at: start) }
    for number in 2...2_000 {
      _ = tokens.judge("Bearer no", from: .ipv4(UInt32(number)), at: start + .milliseconds(1))
    }
    #expect(isThrottled(0, at: start + .seconds(1)))
    // The one with nine was forgotten.
    for _ in 0..<9 { _ = tokens.judge("Bearer no", from: .ipv4(1), at: start + .seconds(1)) }
    #expect(!isThrottled(1, at: start + .seconds(1)))
    // If all have to wait, the oldest is forgotten.
    for number in 3_000..<4_024 {
      for _ in 0..<10 {
        _ = tokens.judge("Bearer no", from: .ipv4(UInt32(number)), at: start + .seconds(2))
      }
    }
    #expect(!isThrottled(0, at: start + .seconds(3)))
    #expect(isThrottled(3_000, at: start + .seconds(3)))
  }

  @Test func `a configuration that would be open to all is refused`() {
    func problem(_ configure: (inout OperationsConfiguration) -> Void) -> String? {
      var configuration = OperationsConfiguration()
      configure(&configuration)
      do throws(LongLinkError) {
        let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
        _ = try OperationsPort(for: server, configuration)
        return nil
      } catch {
        return error.code == .invalidConfiguration ? "\(error)" : "another error"
      }
    }
    for host in ["127.0.0.1", "::1", "[::1]", "localhost", "127.1.2.3"] {
      #expect(problem { $0.host = host } == nil, "\(host)")
    }
    for host in ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org"] {
      #expect(problem { $0.host = host }?.contains("token") == true, "\(host)")
      #expect(
        problem {
          $0.host = host
          $0.token = "secret"
        } == nil)
    }
    for token in ["", "two words", "caf\u{e9}", "line\n", String(repeating: "x", count: 1_025)] {
      #expect(problem { $0.token = token }?.contains("token") == true)
    }
    #expect(problem { $0.port = 65_536 }?.contains("port") == true)
    #expect(problem { $0.host = "" }?.contains("host") == true)
    #expect(problem { $0.names = ["a", ""] }?.contains("names[1]") == true)
  }
}
#endif
