// SPDX-License-Identifier: Apache-2.0

#if Operations
import Configuration
import Logging
import LongLink
@testable import LongLinkConfiguration
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Testing

/// The keys, and what they set.
@Suite struct OperationsConfigurationTests {
  private static func live(
    _ values: [AbsoluteConfigKey: ConfigValue], logger: Logger = LogLines().logger
  ) async throws -> LiveConfiguration {
    try await LiveConfiguration(
      .provider(InMemoryProvider(name: "test", values: values)), logger: logger)
  }

  /// The error of a server's configuration.
  private static func failure(
    of key: String, _ value: ConfigValue
  ) async throws -> LongLinkError {
    let live = try await live([Self.key("server.\(key)"): value])
    do throws(LongLinkError) {
      _ = try live.server(ServerConfiguration(listen: [.host("127.0.0.1", port: 0)]))
    } catch {
      return error
    }
    Issue.record("\(key) should not be allowed")
    throw CancellationError()
  }

  static func key(_ text: String) -> AbsoluteConfigKey {
    AbsoluteConfigKey(text.split(separator: ".").map(String.init))
  }

  @Test func `values from the environment have precedence over those of files`() async throws {
    let environment = EnvironmentVariablesProvider(environmentVariables: [
      "SERVER_LISTEN": "127.0.0.1:9000, [::1]:0,unix:/run/hub",
      "SERVER_LIMITS_MAX_BODY": "1000", "SERVER_HEARTBEAT_INTERVAL": "0.5",
      "SERVER_ADDRESSES_LIMITS_LOOPBACK": "yes", "SERVER_ADDRESSES_DENIED": "10.0.0.0/8",
      "SERVER_DRAIN_ALTERNATIVES": "", "SERVER_LOG_LEVEL": "warning",
    ])
    let file = InMemoryProvider(
      values: [Self.key("server.limits.maxBody"): 5, Self.key("server.name"): "hub"])
    let configuration = try await LiveConfiguration(.provider(environment), .provider(file))
      .server()
    #expect(
      configuration.listen == [
        .host("127.0.0.1", port: 9000), .host("::1", port: 0), .unix(path: "/run/hub"),
      ])
    #expect(configuration.limits.maxBody == 1_000 && configuration.name == "hub")
    #expect(configuration.heartbeat.interval == .milliseconds(500))
    #expect(configuration.addresses.limitsLoopback)
    #expect(configuration.addresses.denied == [AddressRange("10.0.0.0/8")!])
    #expect(configuration.drain.alternatives.isEmpty)
    #expect(configuration.logger.logLevel == .warning)
  }

  @Test func `a client's servers have priorities and weights`() async throws {
    let configuration = try await Self.live([
      Self.key("client.servers"): ConfigValue(.stringArray(["a:1", "b:2"]), isSecret: false),
      Self.key("client.serverPriorities"): ConfigValue(.intArray([0, 0]), isSecret: false),
      Self.key("client.serverWeights"): ConfigValue(.intArray([1, 3]), isSecret: false),
      Self.key("client.environments"): ConfigValue(
        .stringArray(["eu=c:3", "eu=d:4", "us=e:5"]), isSecret: false),
      Self.key("client.adaptHeartbeat.step"): ConfigValue(.double(20), isSecret: false),
      Self.key("client.reconnect.errorRatio.ratio"): ConfigValue(.double(0.5), isSecret: false),
      Self.key("client.reconnect.errorRatio.codes"): ConfigValue(
        .intArray([500]), isSecret: false),
    ]).client()
    #expect(
      configuration.servers == [
        ServerEntry(.host("a", port: 1)), ServerEntry(.host("b", port: 2), weight: 3),
      ])
    #expect(
      configuration.environments == [
        "eu": .inOrder([.host("c", port: 3), .host("d", port: 4)]),
        "us": .inOrder([.host("e", port: 5)]),
      ])
    #expect(configuration.adaptiveHeartbeat?.step == .seconds(20))
    #expect(configuration.reconnect.errorRatio?.codes == [.failed])
  }

  @Test func `an error names the key, the source, the value and what is allowed`() async throws {
    let range = try await Self.failure(of: "limits.maxBody", 0)
    #expect(range.code == .invalidConfiguration && range.field == "server.limits.maxBody")
    #expect(range.detail.contains("InMemoryProvider[test]"), "\(range)")
    #expect(range.detail.contains("0 is out of range"), "\(range)")
    #expect(range.detail.contains("integer, 1 to 2,147,483,648, in bytes"), "\(range)")
    // Found when all values are there.
    let together = try await Self.failure(of: "limits.maxRequestBytes", 5)
    #expect(together.field == "server.limits.maxRequestBytes")
    #expect(together.detail.contains("InMemoryProvider[test]"), "\(together)")
    let kind = try await Self.failure(of: "limits.maxBody", "a\nb")
    #expect(kind.field == "server.limits.maxBody")
    #expect(kind.detail.contains(#""a\nb""#) && !kind.detail.contains("\n"), "\(kind)")
    let list = try await Self.failure(
      of: "addresses.allowed", ConfigValue(.stringArray(["::1", "nowhere"]), isSecret: false))
    #expect(list.detail.contains(#"has "nowhere""#), "\(list)")
  }

  @Test func `a value of the environment is named by its variable`() async throws {
    let environment = EnvironmentVariablesProvider(environmentVariables: [
      "CLIENT_TIMEOUTS_REQUEST": "soon"
    ])
    let live = try await LiveConfiguration(.provider(environment, named: "the environment"))
    let error = #expect(throws: LongLinkError.self) { try live.client() }
    #expect(error?.field == "client.timeouts.request")
    #expect(
      error?.detail.hasPrefix(#"CLIENT_TIMEOUTS_REQUEST in the environment: "soon" is not allowed"#)
        == true, "\(String(describing: error))")
  }

  @Test func `secrets are never shown`() async throws {
    // The table says so of a credential, and a source of any value.
    let values: [AbsoluteConfigKey: ConfigValue] = [
      Self.key("server.limits.maxBody"): ConfigValue(.string("s3cret"), isSecret: true),
      Self.key("client.identity.credential"): ConfigValue(
        .stringArray(["s3cret"]), isSecret: false),
    ]
    let lines = LogLines()
    let live = try await Self.live(values, logger: lines.logger)
    for error in [
      #expect(throws: LongLinkError.self) { try live.server() },
      #expect(throws: LongLinkError.self) { try live.client() },
    ] {
      #expect(error.map { !"\($0)".contains("s3cret") } == true, "\(String(describing: error))")
    }
    for secret in ClientConfiguration.keys where secret.isSecret {
      #expect(secret.text(ClientConfiguration(servers: [ServerEntry]())) == "none")
    }
  }

  @Test func `a credential is what the client shows`() async throws {
    let configuration = try await Self.live([
      Self.key("client.servers"): ConfigValue(.stringArray(["a:1"]), isSecret: false),
      Self.key("client.identity.credential"): "token",
    ]).client()
    #expect(try await configuration.identity.credential?() == Array("token".utf8))
  }

  @Test func `a configuration without its endpoints is not valid`() async throws {
    let live = try await Self.live([:])
    let server = #expect(throws: LongLinkError.self) { try live.server() }
    #expect(server?.field == "server.listen")
    let client = #expect(throws: LongLinkError.self) { try live.client() }
    #expect(client?.field == "client.servers")
  }

  @Test func `a source that cannot be read is named`() async throws {
    let error = await #expect(throws: LongLinkError.self) {
      try await LiveConfiguration(.json("/nowhere/hub.json"))
    }
    #expect(error?.field == "/nowhere/hub.json")
    _ = try await LiveConfiguration(.json("/nowhere/hub.json", isOptional: true))
  }
}
#endif
