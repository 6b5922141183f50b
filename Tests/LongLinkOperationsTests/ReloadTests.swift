// SPDX-License-Identifier: Apache-2.0

#if Operations
import Configuration
import Foundation
import Logging
import LongLink
import LongLinkConfiguration
import LongLinkDriver
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Values that change while clients and servers run. One test at a time gets a signal.
@Suite(.serialized) struct ReloadTests {
  private static func key(_ text: String) -> AbsoluteConfigKey {
    OperationsConfigurationTests.key(text)
  }

  /// A file that is removed with its folder.
  private final class File: Sendable {
    let path = FileManager.default.temporaryDirectory
      .appending(path: "longlink-\(UInt64.random(in: 0 ... .max)).json")

    init(_ text: String) throws { try write(text) }

    deinit { try? FileManager.default.removeItem(at: path) }

    func write(_ text: String) throws {
      try text.write(to: path, atomically: true, encoding: .utf8)
    }
  }

  @Test func `limits of new connections and the level change in a running server`() async throws {
    let values = MutableInMemoryProvider(
      initialValues: [
        Self.key("server.listen"): ConfigValue(.stringArray(["127.0.0.1:0"]), isSecret: false),
        Self.key("server.logLevel"): "error",
      ])
    let (lines, own) = (LogLines(), LogLines())
    let live = try await LiveConfiguration(.provider(values), logger: own.logger)
    var base = ServerConfiguration(listen: [])
    base.logger = lines.logger
    let server = try LongLinkServer(live.server(base))
    server.route(1) { $0.body }
    live.follow(server)
    try await server.start()
    #expect(lines.all("Listening").isEmpty)
    let first = try LongLinkClient(to: server.endpoint)
    #expect(try await first.request(1, [1, 2]) == [1, 2])

    values.setValue(1, forKey: Self.key("server.limits.maxConnections"))
    values.setValue("info", forKey: Self.key("server.logLevel"))
    values.setValue(2, forKey: Self.key("server.loops"))
    await live.reload()
    #expect(
      own.all("Configuration changed").map { $0.metadata["keys"] } == [
        #"["server.logLevel", "server.limits.maxConnections"]"#
      ])
    #expect(
      own.all("A change of the configuration takes effect after a restart")
        .map { $0.metadata["keys"] } == [#"["server.loops"]"#])
    let second = try LongLinkClient(to: server.endpoint)
    await #expect(throws: LongLinkError.self) { try await second.connect() }
    #expect(await server.counters().rejections.keys.sorted() == ["limits.maxConnections"])
    await second.close()

    // A refusal of a request is seen only with the level `info`, also on new connections.
    values.setValue(100, forKey: Self.key("server.limits.maxConnections"))
    values.setValue(3, forKey: Self.key("server.limits.maxBody"))
    await live.reload()
    let third = try LongLinkClient(to: server.endpoint)
    await #expect(throws: LongLinkError.self) { try await third.request(99, [1]) }
    #expect(lines.all("Refused a request").count == 1)
    await #expect(throws: LongLinkError.self) { try await third.request(1, [1, 2, 3, 4]) }
    #expect(try await first.request(1, [1, 2, 3, 4]) == [1, 2, 3, 4])
    // A value that is gone is the default again.
    values.setValue(nil, forKey: Self.key("server.limits.maxBody"))
    await live.reload()
    let fourth = try LongLinkClient(to: server.endpoint)
    #expect(try await fourth.request(1, [1, 2, 3, 4]) == [1, 2, 3, 4])
    for client in [first, third, fourth] { await client.close() }
    await server.shutDown(within: .zero)
  }

  @Test func `a client moves to other servers, and shows another credential`() async throws {
    var servers: [LongLinkServer] = []
    let shown = Journal()
    for index in 0..<2 {
      var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
      configuration.logger.logLevel = .critical
      configuration.identity.authenticate = { client in
        shown.add("\(index) \(String(decoding: client.credential ?? [], as: UTF8.self))")
        return Authentication(Principal("ann"))
      }
      let server = try LongLinkServer(configuration)
      server.route(1) { _ in [UInt8(index)] }
      try await server.start()
      servers.append(server)
    }
    let texts = servers.map { ConfigValue(.stringArray(["\($0.endpoint)"]), isSecret: false) }
    let values = MutableInMemoryProvider(
      initialValues: [
        Self.key("client.servers"): texts[0], Self.key("client.identity.credential"): "one",
      ])
    let live = try await LiveConfiguration(.provider(values), logger: LogLines().logger)
    let client = try LongLinkClient(live.client())
    live.follow(client)
    #expect(try await client.request(1, []) == [0])
    values.setValue("two", forKey: Self.key("client.identity.credential"))
    values.setValue(texts[1], forKey: Self.key("client.servers"))
    await live.reload()
    #expect(try await client.request(1, []) == [1])
    #expect(shown.entries == ["0 one", "1 two"])
    await client.close()
    for server in servers { await server.shutDown(within: .zero) }
  }

  @Test func `what cannot be used changes nothing, and is logged once`() async throws {
    let file = try File(#"{"server": {"listen": ["127.0.0.1:0"], "limits": {"maxBody": 100}}}"#)
    let lines = LogLines()
    let live = try await LiveConfiguration(.json(file.path.path), logger: lines.logger)
    let server = try LongLinkServer(live.server())
    live.follow(server)
    #expect(server.configuration.limits.maxBody == 100)
    let message = "The configuration cannot be used, and the former one stays"
    // What is not there is in no file.
    for (text, named) in [
      (#"{"server": {"listen": ["127.0.0.1:0"], "limits": {"maxBody": 0}}}"#, file.path.path),
      ("{", file.path.path), ("{}", "listen"),
    ] {
      try file.write(text)
      let count = lines.all(message).count
      for _ in 0..<2 { await live.reload() }
      #expect(lines.all(message).count == count + 1, "\(text)")
      let error = lines.all(message).last?.metadata["error"] ?? ""
      #expect(error.contains(named), "\(text): \(error)")
    }
    #expect(lines.all("Configuration changed").isEmpty)
  }

  @Test(arguments: [true, false])
  func `a file is read again at SIGHUP and after the interval`(signals: Bool) async throws {
    let file = try File(#"{"server": {"listen": ["127.0.0.1:0"], "logLevel": "error"}}"#)
    let lines = LogLines()
    let live = try await LiveConfiguration(
      .json(file.path.path), every: signals ? .seconds(3_600) : .milliseconds(1),
      logger: lines.logger)
    let configuration = try live.server()
    try file.write(#"{"server": {"listen": ["127.0.0.1:0"], "logLevel": "debug"}}"#)
    try await testGracefulShutdown { trigger in
      async let running: Void = live.run()
      if signals {
        while Self.isDefault(SIGHUP) { await Task.yield() }
        kill(getpid(), SIGHUP)
      }
      while lines.all("Configuration changed").isEmpty { await Task.yield() }
      trigger.triggerGracefulShutdown()
      try await running
    }
    #expect(configuration.logger.logLevel == .debug)
  }

  /// Whether a signal has its default effect.
  private static func isDefault(_ number: Int32) -> Bool {
    var action = sigaction()
    _ = unsafe sigaction(number, nil, &action)
    #if canImport(Darwin)
    return unsafe action.__sigaction_u.__sa_handler == nil
    #else
    return unsafe action.__sigaction_handler.sa_handler == nil
    #endif
  }
}
#endif
