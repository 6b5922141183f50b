// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Testing

/// Names of methods in errors, log lines and records, and what a handler knows of its request.
@Suite struct MethodNameTests {
  private static let fail = RPCMethod<Note, Note>(.fail, "Fail", of: "test.Notes")
  private static let echo = RPCMethod<Note, Note>(.echo, "Echo", of: "test.Notes")
  private static let watch = RPCMethod<Note, Streamed<Note>>(30, "Watch", of: "test.Notes")
  private static let collect = RPCMethod<Streamed<Note>, Note>(31, "Collect", of: "test.Notes")
  private static let relay = RPCMethod<Streamed<Note>, Streamed<Note>>(
    32, "Relay", of: "test.Notes")

  private static func check(
    _ error: LongLinkError, _ name: String, type: MessageType,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(error.method == name, sourceLocation: sourceLocation)
    #expect(error.messageType == type, sourceLocation: sourceLocation)
    #expect(
      "\(error)".hasPrefix("request \(name) type=\(type) serial="), "\(error)",
      sourceLocation: sourceLocation)
  }

  @Test func `the error of a typed request names its method, however it was made`() async throws {
    try await Stage.pair { stage, server, client in
      let (method, name) = (Self.fail, "test.Notes/Fail")
      let awaited = try await failure { try await client.request(method, Note(1)) }
      Self.check(awaited, name, type: .fail)
      let submitted = try await failure { try await client.submit(method, Note(1)).value }
      Self.check(submitted, name, type: .fail)
      let outcome: Result<Note, LongLinkError> = await withCheckedContinuation { waiter in
        client.request(method, Note(1), on: .connectionLoop) { waiter.resume(returning: $0) }
      }
      Self.check(try await failure { try outcome.get() }, name, type: .fail)
      let damaged = RPCMethod<[UInt8], Note>(.echo, "Echo", of: "test.Notes")
      let undecodable = try await failure { try await client.request(damaged, [255]) }
      #expect(undecodable.code == .decodingFailed && undecodable.method == "test.Notes/Echo")
      // A type alone has no name.
      let plain = try await failure { try await client.request(.fail, [1]) }
      #expect(plain.method == nil && plain.operation.hasPrefix("request type=3 serial="))
    }
  }

  @Test func `the error of a typed stream names its method, however it was made`() async throws {
    try await Stage.serving({ server in
      server.routeStream(Self.watch) { _, _, writer in
        try await writer.write(Note(1))
        throw Rejection(1_000, "no more notes")
      }
      server.routeStream(Self.collect) { _, _ in throw Rejection(1_001, "no notes\n") }
      server.routeStream(Self.relay) { _, _, _ in throw Rejection(1_002, "no relay") }
    }) { stage, _, client in
      let watched = try await failure {
        for try await _ in client.stream(Self.watch, Note(1)) {}
      }
      Self.check(watched, "test.Notes/Watch", type: 30)
      #expect(watched.itemsReceived == 1 && watched.detail == "no more notes", "\(watched)")
      let collected = try await failure { try await client.sendItems(Self.collect) { _ in } }
      Self.check(collected, "test.Notes/Collect", type: 31)
      #expect(collected.detail == #"no notes\n"#, "\(collected)")
      let relayed = try await failure { try await client.exchange(Self.relay) { _, _ in } }
      Self.check(relayed, "test.Notes/Relay", type: 32)
      let outcome: Result<Void, LongLinkError> = await withCheckedContinuation { waiter in
        client.stream(
          Self.watch, Note(1), on: .connectionLoop, onItem: { (_: Note) in },
          completion: { waiter.resume(returning: $0) })
      }
      Self.check(try await failure { try outcome.get() }, "test.Notes/Watch", type: 30)
      let misshapen = try await failure { try await client.request(30, [1]) }
      let text =
        "test.Notes/Watch (message type 30) carries items to the caller; "
        + "the request asks for no items"
      #expect(misshapen.response == .malformed && misshapen.detail == text, "\(misshapen)")
    }
  }

  @Test func `a client's lines about the server's requests have the name of the method`()
    async throws
  {
    let lines = LogLines()
    try await Stage.pair(client: { $0.logger = lines.logger }) { stage, server, client in
      struct Broken: Error {}
      client.onRequest(Self.echo) { _, _ in throw Broken() }
      client.onStreamRequest(Self.watch) { _, _, _ in throw Broken() }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      let error = try await failure { try await peer.request(Self.echo, Note(1)) }
      Self.check(error, "test.Notes/Echo", type: .echo)
      _ = try await failure { for try await _ in peer.stream(Self.watch, Note(1)) {} }
      #expect(
        lines.all("A handler failed").map { $0.metadata["method"] }
          == ["test.Notes/Echo", "test.Notes/Watch"])
    }
  }

  @Test func `a server's records have the name of the method`() async throws {
    final class Names: Observer {
      let arrived = Tally<String?>()
      func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {
        arrived.add(exchange.method)
      }
    }
    let names = Names()
    try await Stage.serving(
      { server in
        server.route(Self.echo) { note, _ in note }
        server.route(7) { request in request.body }
      }, server: { $0.observers = Observers([names]) }
    ) { _, _, client in
      _ = try await client.request(Self.echo, Note(1))
      _ = try await client.request(7, [])
      _ = try? await client.request(8, [])
      #expect(names.arrived.elements == ["test.Notes/Echo", nil, nil])
    }
  }

  // MARK: Handlers

  /// Accepts everyone as ann.
  private static func accept(_ configuration: inout ServerConfiguration) {
    configuration.identity.authenticate = { _ in
      Authentication(Principal("ann\n", attributes: ["secret": "hush"]))
    }
  }

  @Test func `a handler's logger says which request it is about`() async throws {
    let (lines, connections) = (LogLines(), Tally<String>())
    try await Stage.serving(
      { server in
        server.route(Self.echo) { note, request in
          connections.add("\(request.peer.connectionID) \(request.peer.id) \(request.serial)")
          request.logger.info("Echoing", metadata: ["note": "\(note.number)"])
          return note
        }
        server.route(7) { request in
          request.logger.info("No method")
          return request.body
        }
      },
      server: {
        $0.logger = lines.logger
        Self.accept(&$0)
      }
    ) { _, server, client in
      _ = try await client.request(Self.echo, Note(9))
      let line = try #require(lines.all("Echoing").first)
      let told = line.metadata
      #expect(
        connections.elements
          == ["\(told["connection"] ?? "") \(told["client"] ?? "") \(told["serial"] ?? "")"])
      #expect(told["type"] == "1" && told["method"] == "test.Notes/Echo" && told["note"] == "9")
      #expect(told["principal"] == #"ann\n"#)
      #expect(told["peer"] == (await server.peers().first?.address).map { "\($0)" })
      #expect(told.count == 8, "\(told)")
      _ = try await client.request(7, [])
      let plain = try #require(lines.all("No method").first)
      #expect(plain.metadata["type"] == "7" && plain.metadata["method"] == nil)
    }
  }

  @Test func `a client's handler logs with the client's logger`() async throws {
    let lines = LogLines()
    try await Stage.pair(client: { $0.logger = lines.logger }) { _, server, client in
      client.onRequest(Self.echo) { note, request in
        request.logger.info("Asked")
        #expect(request.method == "test.Notes/Echo")
        return note
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      _ = try await peer.request(Self.echo, Note(1))
      let told = try #require(lines.all("Asked").first).metadata
      #expect(told["method"] == "test.Notes/Echo" && told["principal"] == nil)
      #expect(told["peer"] == "\(server.addresses[0])")
    }
  }

  @Test(arguments: [true, false])
  func `a handler asks who the client is, and a request of nobody is rejected`(
    _ authenticates: Bool
  ) async throws {
    try await Stage.serving(
      { server in
        server.route(7) { request in Array(try request.principal.name.utf8) }
      }, server: { if authenticates { Self.accept(&$0) } }
    ) { _, _, client in
      guard !authenticates else {
        #expect(try await client.request(7, []) == Array("ann\n".utf8))
        return
      }
      let error = try await failure { try await client.request(7, []) }
      #expect(error.response == .unauthenticated && error.delivery == .answered)
      #expect(error.detail.contains("it was not authenticated"), "\(error)")
    }
  }
}
