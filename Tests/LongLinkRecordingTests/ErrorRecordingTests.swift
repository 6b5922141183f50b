// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkCore
import LongLinkScenarios
import LongLinkServer
import LongLinkTesting
import Logging
import Testing

/// The recordings that errors have.
@Suite("Recordings in errors")
struct ErrorRecordingTests {
  /// Runs a client that is connected to a server which never answers type 2.
  private static func run(
    recorderBytes: Int = 65_536,
    _ body: @escaping @Sendable (Simulation, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
      configuration.logger.logLevel = .critical
      let server = try LongLinkServer(configuration, on: [simulation.mainLoop])
      server.route(1) { request in request.body }
      server.route(2) { _ async throws -> [UInt8] in
        try await simulation.sleep(for: .seconds(3_600))
        return []
      }
      try await server.start()
      var own = ClientConfiguration(servers: [server.endpoint])
      own.logger.logLevel = .critical
      own.recorderBytes = recorderBytes
      let client = try LongLinkClient(own, on: simulation.eventLoop(named: "client"))
      try await client.connect()
      try await body(simulation, server, client)
      await client.close()
      await server.shutDown(within: .zero)
    }
  }

  private static func failure(
    _ client: LongLinkClient, timeout: Duration = .seconds(60)
  ) async -> LongLinkError? {
    do throws(LongLinkError) {
      _ = try await client.request(2, [1, 2, 3], options: RequestOptions(timeout: timeout))
      return nil
    } catch {
      return error
    }
  }

  /// The steps by which the recording of an error replays.
  private static func steps(_ error: LongLinkError?) -> Int {
    guard let file = error?.recording, let recording = try? RecordingFile(file),
      case .replayed(let steps) = Replayer.sum(Replayer.replay(recording))
    else { return 0 }
    return steps
  }

  @Test("the requests of a lost connection have one that replays")
  func lost() async throws {
    try await Self.run { simulation, _, client in
      async let first = Self.failure(client)
      async let second = Self.failure(client)
      try await simulation.sleep(for: .seconds(1))
      for link in simulation.network.links { link.reset(.toClient) }
      let errors = await (first, second)
      #expect(errors.0?.code == .connectionLost)
      #expect(Self.steps(errors.0) >= 8)
      #expect(errors.0?.recording == errors.1?.recording)
    }
  }

  @Test("a recording in which the core has decided something else differs")
  func differs() async throws {
    try await Self.run { _, _, client in
      let error = await Self.failure(client, timeout: .seconds(2))
      var file = try #require(error?.recording)
      // The request's frame as it was sent: the low byte of its serial.
      let place = try #require(Self.place(ofSent: .request, in: file))
      file[place + 7] ^= 1
      let outcome = Replayer.sum(Replayer.replay(try RecordingFile(file)))
      guard case .differs(_, let connection, let text) = outcome else {
        Issue.record("the outcome is \(outcome)")
        return
      }
      #expect(connection > 0)
      #expect(text.contains("byte 7 of the frame request"))
    }
  }

  /// Where the first frame of a kind begins that was sent.
  private static func place(ofSent kind: FrameKind, in file: [UInt8]) -> Int? {
    func number(_ place: Int) -> Int {
      file[place..<place + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    var block = 0
    while block < file.count {
      // An enhanced packet of the first interface, sent.
      if number(block) == 6, number(block + 8) == 0, file[block + 28 + 4] == 1,
        file[block + 28 + 16] & 0x3F == kind.rawValue
      {
        return block + 28 + 16
      }
      block += number(block + 4)
    }
    return nil
  }

  @Test("a request whose deadline passes has one")
  func late() async throws {
    try await Self.run { _, _, client in
      let error = await Self.failure(client, timeout: .seconds(2))
      #expect(error?.code == .deadlineExceeded)
      #expect(Self.steps(error) >= 8)
      #expect(error == error?.with(.deadlineExceeded))
    }
  }

  @Test("a failed connect has the connection that failed")
  func failedConnect() async throws {
    try await Self.run { simulation, server, client in
      await server.shutDown(within: .zero)
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      configuration.timeouts.connect = .seconds(1)
      let other = try LongLinkClient(configuration, on: simulation.mainLoop)
      do throws(LongLinkError) {
        try await other.connect()
        Issue.record("it connects although nobody listens")
      } catch {
        #expect(error.code == .connectFailed)
        #expect(Self.steps(error) >= 2)
      }
      await other.close()
    }
  }

  @Test("without a recorder, errors have none")
  func off() async throws {
    try await Self.run(recorderBytes: 0) { _, _, client in
      let error = await Self.failure(client, timeout: .seconds(2))
      #expect(error?.code == .deadlineExceeded)
      #expect(error?.recording == nil)
    }
  }

  @Test("a size out of range is refused")
  func size() {
    var configuration = ClientConfiguration(servers: [.host("localhost", port: 1)])
    configuration.recorderBytes = 100
    #expect(throws: LongLinkError.self) { try configuration.validate() }
  }
}
#endif
