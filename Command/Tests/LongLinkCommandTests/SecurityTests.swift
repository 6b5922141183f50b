// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDemoMessages
import LongLinkDriver
import LongLinkProtobufC
import Testing

/// TLS and tokens on the command line, and the exit codes 8 and 9.
@Suite(.timeLimit(.minutes(15))) struct SecurityTests {
  /// A folder with the files of `longlink certificates`, which is removed with the value.
  final class Trial: Sendable {
    let folder: String

    init() async throws {
      folder = NSTemporaryDirectory() + "longlink-\(UInt64.random(in: 0 ... .max))"
      try await make()
    }

    /// Makes all files, or makes them anew.
    func make() async throws {
      let made = try await Tool.run("certificates", folder)
      try #require(made.code == 0, "\(made.errors)")
    }

    deinit {
      try? FileManager.default.removeItem(atPath: folder)
    }

    subscript(_ name: String) -> String { "\(folder)/\(name)" }
    /// The options of a server with its certificate.
    var server: [String] {
      ["--tls-certificate", self["server.pem"], "--tls-key", self["server-key.pem"]]
    }
    /// The options of a client that trusts the authority.
    var client: [String] { ["--tls", "--tls-ca", self["ca.pem"]] }
    /// The options of one that shows a certificate.
    var known: [String] {
      client + ["--tls-certificate", self["client.pem"], "--tls-key", self["client-key.pem"]]
    }

    /// The pin of a certificate, as OpenSSL's own programs compute it.
    func pin(_ name: String) throws -> String {
      let end = try SpawnedProcess.run([
        "/bin/sh", "-c",
        """
        openssl x509 -in "\(self[name])" -noout -pubkey | openssl pkey -pubin -outform der \
        | openssl dgst -sha256 -binary | openssl base64
        """,
      ])
      return end.text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }

  private static func call(_ server: RunningServer, _ options: [String]) async throws -> Finished {
    try await Tool(["call", "1", "--text", "hello", "--port", server.port] + options).finish()
  }

  private static func expect(
    _ code: Int32, saying text: String = "", _ server: RunningServer, _ options: [String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let call = try await call(server, options)
    #expect(call.code == code, "\(call.errors)", sourceLocation: sourceLocation)
    #expect(
      text.isEmpty || call.errors.contains(text), "\(call.errors)", sourceLocation: sourceLocation)
    #expect((call.text == "hello") == (code == 0), sourceLocation: sourceLocation)
  }

  @Test(arguments: [
    ["call", "1", "--tls-ca", "x"], ["call", "1", "--tls-insecure"],
    ["call", "1", "--tls-pin", "AAAA"],
    ["call", "1", "--tls", "--tls-ca", "/no/such/file"],
    ["call", "1", "--tls", "--tls-ca", "/dev/null", "--tls-insecure"],
    ["call", "1", "--tls", "--tls-pin", "AAAA"],
    ["call", "1", "--tls", "--tls-pin", "no hash", "--tls-pin", "neither"],
    [
      "call", "1", "--tls", "--tls-insecure",
      "--tls-pin", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
      "--tls-pin", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ],
    ["call", "1", "--tls", "--tls-certificate", "x"], ["ping", "--tls", "--tls-key", "x"],
    ["call", "1", "--token", ""],
    ["call", "1", "--host", "192.0.2.1", "--token", "s"],
    ["call", "1", "--host", "example.com", "--token", "s"],
    ["call", "1", "--host", "127.0.0.1.example.com", "--token", "s"],
    ["serve", "--tls-certificate", "x"], ["serve", "--tls-key", "x"],
    ["serve", "--tls-certificate", "/no/such/file", "--tls-key", "/no/such/file"],
    ["serve", "--tls-client-ca", "x"], ["serve", "--tls-client-certificate", "require"],
    ["serve", "--token", "name"], ["serve", "--token", "=secret"], ["serve", "--token", "name="],
    ["serve", "--credential-validity", "2"],
    ["serve", "--token", "a=b", "--credential-validity", "0"],
    ["serve", "--token", "a=b", "--credential-validity", "0.0001"],
    ["serve", "--token", "a=b", "--credential-validity", "soon"],
    ["certificates"], ["certificates", "/tmp/x", "--days", "0"],
    ["certificates", "/tmp/x", "--name", "a,b"], ["certificates", "/tmp/x", "--name", "1.2.3"],
    ["certificates", "/tmp/x", "--name", "bad..name"], ["certificates", "/tmp/x", "--name", "a."],
    ["certificates", "/tmp/x", "--name", "10"], ["certificates", "/tmp/x", "--name", "a:b"],
  ])
  func `wrong arguments end with 64 and say why`(_ arguments: [String]) async throws {
    let tool = try await Tool(arguments).finish()
    #expect(tool.code == 64, "\(tool.errors)")
    #expect(tool.output.isEmpty && !tool.errors.isEmpty)
  }

  @Test func `errors name options, and not fields of the library`() async throws {
    let cases = [
      (["call", "1", "--tls", "--tls-ca", "/no/such/file"], "--tls-ca"),
      (["serve", "--tls-certificate", "/no/file", "--tls-key", "/no/key"], "--tls-certificate"),
    ]
    for (arguments, option) in cases {
      let tool = try await Tool(arguments).finish()
      #expect(tool.code == 64 && tool.errors.contains("check \(option): "), "\(tool.errors)")
      #expect(!tool.errors.contains("security."), "\(tool.errors)")
    }
  }

  @Test func `certificates that only their owner can read are made`() async throws {
    let trial = try await Trial()
    let names = try FileManager.default.contentsOfDirectory(atPath: trial.folder).sorted()
    #expect(
      names == [
        "ca-key.pem", "ca.pem", "client-key.pem", "client.pem", "server-key.pem", "server.pem",
      ])
    for name in names {
      let attributes = try FileManager.default.attributesOfItem(atPath: trial[name])
      #expect((attributes[.posixPermissions] as? Int) == 0o600, "\(name)")
    }
    #expect(try await Tool.run("certificates", "/dev/null/x").code == 1)
  }

  @Test func `a server is verified, and what is wrong has a name`() async throws {
    let (trial, other) = (try await Trial(), try await Trial())
    let server = try await RunningServer(trial.server)
    try await Self.expect(0, server, trial.client)
    try await Self.expect(0, server, trial.client + ["--host", "localhost"])
    try await Self.expect(0, server, ["--tls", "--tls-insecure"])
    try await Self.expect(8, saying: "no authority", server, other.client)
    try await Self.expect(8, saying: "add its authority to --tls-ca", server, ["--tls"])
    try await Self.expect(
      8, saying: "or set --tls-server-name", server,
      trial.client + ["--tls-server-name", "example.com"])
    let (right, wrong) = (try trial.pin("server.pem"), try other.pin("server.pem"))
    let pins = ["--tls-pin", wrong, "--tls-pin"]
    try await Self.expect(0, server, trial.client + pins + [right])
    try await Self.expect(0, server, trial.client + pins + [try trial.pin("ca.pem")])
    try await Self.expect(8, saying: "pin", server, trial.client + pins + [try other.pin("ca.pem")])
    let ping = try await Tool(["ping", "--count", "1", "--port", server.port] + other.client)
      .finish()
    #expect(ping.code == 8, "\(ping.errors)")
    let bench = try await Tool(
      ["bench", "--duration", "0.2", "--port", server.port] + trial.client
    ).finish()
    #expect(bench.code == 0, "\(bench.errors)")
    let request = try CountRequest(count: 3).hex
    let stream = try await Tool(
      ["stream", "6", "--hex", request, "--port", server.port] + trial.client
    ).finish()
    #expect(stream.code == 0 && stream.lines.count == 3, "\(stream.errors)")
  }

  @Test func `a plain peer either way ends with 8`() async throws {
    let trial = try await Trial()
    let (secure, plain) = (try await RunningServer(trial.server), try await RunningServer())
    try await Self.expect(8, saying: "this client does not: set --tls, or", secure, [])
    try await Self.expect(8, saying: "connect without --tls, or to", plain, trial.client)
  }

  @Test func `clients show certificates`() async throws {
    let (trial, other) = (try await Trial(), try await Trial())
    let authority = ["--tls-client-ca", trial["ca.pem"]]
    let required = try await RunningServer(trial.server + authority)
    try await Self.expect(0, required, trial.known)
    try await Self.expect(8, saying: "set --tls-certificate", required, trial.client)
    let foreign =
      trial.client + [
        "--tls-certificate", other["client.pem"], "--tls-key", other["client-key.pem"],
      ]
    try await Self.expect(8, saying: "certificate", required, foreign)
    let requested = try await RunningServer(
      trial.server + authority + ["--tls-client-certificate", "request"])
    try await Self.expect(0, requested, trial.known)
    try await Self.expect(0, requested, trial.client)
    try await Self.expect(8, saying: "certificate", requested, foreign)
  }

  @Test func `a client without the right token ends with 9`() async throws {
    let trial = try await Trial()
    let server = try await RunningServer(
      trial.server + ["--token", "ann=first", "--token", "bob=second=third"])
    try await Self.expect(0, server, trial.client + ["--token", "first"])
    try await Self.expect(0, server, trial.client + ["--token", "second=third"])
    try await Self.expect(
      9, saying: "the credential (401): unknown token", server, trial.client + ["--token", "third"])
    try await Self.expect(9, saying: "401", server, trial.client)
    let plain = try await RunningServer("--token", "ann=first")
    try await Self.expect(0, plain, ["--token", "first"])
    try await Self.expect(9, saying: "401", plain, ["--host", "localhost", "--token", "no"])
    // A certificate does not stand in for a token.
    let both = try await RunningServer(
      trial.server + ["--tls-client-ca", trial["ca.pem"], "--token", "ann=first"])
    try await Self.expect(9, saying: "401", both, trial.known)
    try await Self.expect(0, both, trial.known + ["--token", "first"])
  }

  @Test func `a deadline, a refused connect and a lost connection keep their codes`()
    async throws
  {
    let trial = try await Trial()
    let silent = try ScriptedPeer { $0.readToEnd() }
    let late = try await Tool(
      ["call", "1", "--port", silent.port, "--timeout", "0.25"] + trial.client
    ).finish()
    #expect(late.code == 4, "\(late.errors)")
    let server = try await RunningServer(trial.server)
    let request = try SleepRequest(milliseconds: 60_000).hex
    let sleeping = try Tool(
      ["call", "2", "--port", server.port, "--hex", request, "--timeout", "100"] + trial.client)
    // Its request has been received once another one that came later is answered behind it.
    try await Self.awaitRequests(2, server, trial)
    server.tool.send(SIGKILL)
    let lost = await sleeping.finish()
    #expect(lost.code == 7, "\(lost.errors)")
    _ = await server.tool.finish()
    try await Self.expect(3, saying: "ECONNREFUSED", server, trial.client)
  }

  /// Waits until a server has received so many requests, those that look at it included.
  private static func awaitRequests(
    _ least: Int, _ server: RunningServer, _ trial: Trial
  ) async throws {
    var looks = 0
    while true {
      looks += 1
      let call = try await Tool(["call", "5", "--port", server.port] + trial.client).finish()
      try #require(call.code == 0, "\(call.errors)")
      if try StatsReply(copying: call.output).requestsReceived > UInt64(looks) { return }
      try Task.checkCancellation()
    }
  }

  @Test func `files that have changed are used at a signal`() async throws {
    let trial = try await Trial()
    let server = try await RunningServer(trial.server)
    let old = try Data(contentsOf: URL(fileURLWithPath: trial["ca.pem"]))
    try await Self.expect(0, server, trial.client)
    try await trial.make()
    server.tool.send(SIGHUP)
    while try await Self.call(server, trial.client).code != 0 { try Task.checkCancellation() }
    let former = trial["former.pem"]
    try old.write(to: URL(fileURLWithPath: former))
    try await Self.expect(8, server, ["--tls", "--tls-ca", former])
    // What does not fit together leaves everything as it is.
    try Data("nothing".utf8).write(to: URL(fileURLWithPath: trial["server.pem"]))
    server.tool.send(SIGHUP)
    let line = try #require(await server.tool.nextErrorLine())
    #expect(line.contains("error") && line.contains("server.pem"), "\(line)")
    try await Self.expect(0, server, trial.client)
  }
}
