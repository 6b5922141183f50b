// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkServer
import Logging
import Testing

@testable import LongLinkOps
@_spi(Loop) @testable import LongLinkTransport

/// That a port lives as long as its server, and not longer.
@Suite struct LifetimeTests {
  private static func server(
    on loops: [EventLoop] = [], _ endpoints: Endpoint...
  ) throws -> LongLinkServer {
    var configuration = ServerConfiguration(
      listen: endpoints.isEmpty ? [.host("127.0.0.1", port: 0)] : endpoints)
    configuration.logger.logLevel = .critical
    return try LongLinkServer(configuration, on: loops)
  }

  private static func operations(for server: LongLinkServer) throws -> OperationsPort {
    var configuration = OperationsConfiguration()
    configuration.logger.logLevel = .critical
    return try OperationsPort(for: server, configuration)
  }

  private func expectEnd(
    of operations: OperationsPort, at port: UInt16?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    #expect(operations.address == nil, sourceLocation: sourceLocation)
    let port = try #require(port, sourceLocation: sourceLocation)
    await #expect(throws: (any Error).self, sourceLocation: sourceLocation) {
      try await RawPeer.connect(to: Int(port))
    }
    let error = await #expect(throws: LongLinkError.self, sourceLocation: sourceLocation) {
      try await operations.start()
    }
    #expect(error?.code == .closed, sourceLocation: sourceLocation)
  }

  @Test func `a server that is shut down before its start ends its port`() async throws {
    let server = try Self.server()
    let operations = try Self.operations(for: server)
    let port = try await operations.start().port
    await server.shutDown()
    try await expectEnd(of: operations, at: port)
  }

  @Test func `a server that could not start keeps its port until it is shut down`() async throws {
    let first = try Self.server()
    try await first.start()
    let second = try Self.server(first.endpoint)
    let operations = try Self.operations(for: second)
    let port = try await operations.start().port
    let error = await #expect(throws: LongLinkError.self) { try await second.start() }
    #expect(error?.code == .connectFailed)
    // It can be started again.
    #expect(operations.address?.port == port)
    await first.shutDown(within: .zero)
    try await second.start()
    await second.shutDown(within: .zero)
    try await expectEnd(of: operations, at: port)
  }

  @Test func `a run that cannot start its server ends the port`() async throws {
    let first = try Self.server()
    try await first.start()
    let second = try Self.server(first.endpoint)
    let operations = try Self.operations(for: second)
    let port = try await operations.start().port
    let error = await #expect(throws: LongLinkError.self) { try await second.run() }
    #expect(error?.code == .connectFailed)
    try await expectEnd(of: operations, at: port)
    await second.waitUntilShutDown()
    // A run of a server that runs already is another matter.
    let other = Task { try await first.run() }
    await first.shutDown(within: .zero)
    _ = await other.result
  }

  @Test func `whichever comes first, the start of the port or the end of its server`()
    async throws
  {
    for _ in 0..<50 {
      let server = try Self.server()
      let operations = try Self.operations(for: server)
      async let starting = operations.start()
      async let ending: Void = server.shutDown()
      await ending
      let port = try? await starting.port
      #expect(operations.address == nil)
      if let port {
        await #expect(throws: (any Error).self) { try await RawPeer.connect(to: Int(port)) }
      }
    }
  }

  /// In a process of its own, whose threads are known.
  @Test func `a port that cannot start any more leaves no thread`() async {
    await #expect(processExitsWith: .success) {
      let server = try LifetimeTests.server()
      let operations = try LifetimeTests.operations(for: server)
      try await operations.start()
      precondition(LifetimeTests.portThreads == 1)
      await server.shutDown()
      try await until { LifetimeTests.portThreads == 0 }
      let late = try LifetimeTests.server()
      let port = try LifetimeTests.operations(for: late)
      await late.shutDown()
      do {
        try await port.start()
        preconditionFailure("it has started")
      } catch {
        precondition((error as? LongLinkError)?.code == .closed)
      }
      precondition(LifetimeTests.portThreads == 0)
    }
  }

  /// The threads of swift-nio in this process.
  private static var portThreads: Int {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return threads.count { thread in
      (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8))?
        .hasPrefix("NIO-ELT") ?? false
    }
  }

  @Test func `a second port of one server traps and names both places`() async throws {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let server = try LifetimeTests.server()
      _ = try LifetimeTests.operations(for: server)
      _ = try LifetimeTests.operations(for: server)
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("the operations port is set twice"))
    #expect(text.contains("LongLinkOpsTests/LifetimeTests.swift"))
  }

  @Test func `handlers are timed until the port or the server has ended`() async throws {
    let loop = try EventLoop(name: "timing")
    for endsPort in [true, false] {
      let server = try Self.server(on: [loop])
      let operations = try Self.operations(for: server)
      try await operations.start()
      try await server.start()
      #expect(await loop.run { loop.stallWatch.isTiming })
      if endsPort { await operations.shutDown() } else { await server.shutDown(within: .zero) }
      #expect(await loop.run { !loop.stallWatch.isTiming })
      await server.shutDown(within: .zero)
    }
    loop.shutDown()
  }

  @Test func `the loops of a start that has failed are let go`() async throws {
    let server = try Self.server()
    let watch = ServerWatch(server, methods: [:], recordings: nil)
    weak let loop: EventLoop? = try await {
      let loop = try EventLoop(name: "failed")
      await loop.run { _ = watch.figures }
      await watch.serverStopped(on: loop)
      loop.shutDown()
      return loop
    }()
    #expect(loop == nil)
    await server.shutDown()
  }
}
#endif
