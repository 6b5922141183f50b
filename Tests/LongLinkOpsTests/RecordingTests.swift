// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkCore
import LongLinkScenarios
import LongLinkServer
import LongLinkTestSupport
import LongLinkTransport
import Logging
import Testing

@testable import LongLinkOps

/// `/recording`, and the files that violations and operators cause.
@Suite struct RecordingTests {
  private struct Written: Decodable {
    let file: String
    let bytes: Int
  }

  /// Runs a body with a server that has a directory for recordings.
  private func run(
    _ configure: (inout OperationsConfiguration) -> Void = { _ in },
    server: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (OpsStage, RecordingFolder) async throws -> Void
  ) async throws {
    let folder = RecordingFolder()
    try await OpsStage.run {
      $0.recordingsDirectory = folder.path
      configure(&$0)
    } server: {
      server(&$0)
    } _: { stage in
      try await body(stage, folder)
    }
  }

  /// Connects, breaks a rule, and closes when the goaway has come.
  private func violate(
    _ stage: OpsStage, _ bytes: [UInt8] = [UInt8](repeating: 0xFF, count: 64)
  ) async throws {
    let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
    let peer = try await RawPeer.connect(to: port)
    peer.send(bytes)
    await peer.heard.until { !$0.bytes.isEmpty || $0.isClosed }
    peer.close()
  }

  /// Downloads the recording: the head of the answer, and its bytes.
  private func download(_ stage: OpsStage) async throws -> (head: String, bytes: [UInt8]) {
    let peer = try await RawPeer.connect(to: stage.port)
    defer { peer.close() }
    peer.send("GET /recording HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await peer.hearsEnd()
    let answer = peer.heard.value.bytes
    let end = try #require(Data(answer).range(of: Data("\r\n\r\n".utf8))).upperBound
    return (String(decoding: answer[..<end], as: UTF8.self), PortReply.joined(answer[end...]))
  }

  private func expectReplayed(_ recording: RecordingFile, connections count: Int) {
    #expect(recording.damage == nil)
    let outcomes = Replayer.replay(recording)
    #expect(outcomes.count == count)
    for (_, outcome) in outcomes {
      guard case .replayed = outcome else {
        Issue.record("\(outcome)")
        continue
      }
    }
  }

  // MARK: Downloads

  @Test func `a download has all loops, names methods, and replays`() async throws {
    try await OpsStage.run {
      $0.methods = [OpsStage.unnamed: "in two\nlines"]
    } server: {
      $0.loops = 2
    } _: { stage in
      for _ in 0..<4 {
        let client = try await stage.client()
        for size in 0..<30 {
          _ = try await client.request(OpsStage.echo, [UInt8](repeating: 1, count: size * 100))
        }
      }
      let (head, bytes) = try await download(stage)
      #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(head.contains("Content-Type: application/x-pcapng\r\n"))
      #expect(head.lowercased().contains("transfer-encoding: chunked\r\n"))
      #expect(!head.contains("X-LongLink-Incomplete"))
      let recording = try RecordingFile(bytes)
      #expect(recording.names[1] == "Echo" && recording.names[2] == "test.Stage/Fail")
      #expect(recording.names[4] == "in two lines")
      #expect(Set(recording.packets.map(\.loop)) == [0, 1])
      expectReplayed(recording, connections: 4)
      #expect(try await stage.send("HEAD", "/recording").status == 200)
      let wrong = try await stage.send("PUT", "/recording")
      #expect(wrong.status == 405 && wrong.headers["allow"] == "GET, HEAD, POST")
    }
  }

  @Test func `a loop that hangs is left out, and named`() async throws {
    try await OpsStage.run(
      server: { $0.loops = 2 },
      routes: { server in
        server.route(RPCMethod<[UInt8], [UInt8]>(60, "Block")) { body, _ in
          Blocking.hold(body)
          return body
        }
      }
    ) { stage in
      let clients = [try await stage.client(), try await stage.client()]
      for client in clients { _ = try await client.request(OpsStage.echo, [1]) }
      let blocking = Blocking.begin()
      let held = Task { try await clients[0].request(60, blocking.body) }
      await blocking.untilHeld()
      let (head, bytes) = try await download(stage)
      let loop = try #require(head.firstMatch(of: /X-LongLink-Incomplete: ([01])\r\n/)?.1)
      let recording = try RecordingFile(bytes)
      #expect(recording.packets.allSatisfy { $0.connection == 0 || "\($0.loop)" != loop })
      expectReplayed(recording, connections: 1)
      blocking.release()
      _ = try await held.value
    }
  }

  @Test func `credentials are in no recording`() async throws {
    try await run(server: {
      $0.identity.authenticate = { _ in Authentication(Principal("somebody")) }
    }) { stage, folder in
      let client = try await stage.client {
        $0.identity.credential = { Array("hush-credential".utf8) }
      }
      let metadata = [
        "authorization": "Bearer hush-metadata", "Cookie": "hush-cookie", "trace": "plain-text",
      ]
      _ = try await client.request(
        OpsStage.echo, Array("hush-body".utf8), options: RequestOptions(metadata: metadata))
      #expect(try await stage.send("POST", "/recording").status == 201)
      let bytes = try await download(stage).bytes
      for recording in [bytes, try folder.read(try #require(folder.names.first))] {
        let text = String(decoding: recording, as: UTF8.self)
        #expect(text.contains("plain-text") && text.contains("authorization"))
        #expect(!text.contains("hush"))
      }
    }
  }

  // MARK: Files of operators

  @Test func `a POST writes a file that only its owner can read`() async throws {
    try await run { stage, folder in
      // The directory is there when the server has started.
      try await until { folder.mode(of: "") == 0o700 }
      let client = try await stage.client()
      _ = try await client.request(OpsStage.echo, [1])
      let reply = try await stage.send("POST", "/recording")
      #expect(reply.status == 201 && reply.headers["content-type"] == "application/json")
      let written: Written = try reply.json()
      #expect(written.file.wholeMatch(of: /longlink-\d{8}T\d{6}\.\d{6}Z-operator\.pcapng/) != nil)
      #expect(folder.names == [written.file])
      #expect(folder.mode(of: written.file) == 0o600 && folder.mode(of: "") == 0o700)
      let bytes = try folder.read(written.file)
      #expect(bytes.count == written.bytes)
      expectReplayed(try RecordingFile(bytes), connections: 1)
      let metrics = try await stage.request("/metrics")
      #expect(metrics.metric("longlink_recordings_total{cause=\"operator\"}") == 1)
      #expect(metrics.metric("longlink_recordings_skipped_total") == 0)
      #expect(metrics.metric("longlink_recordings_failed_total") == 0)
      let foreign = try await stage.send("POST", "/recording", ["Origin: http://localhost"])
      #expect(foreign.status == 403 && folder.names.count == 1)
    }
  }

  @Test func `one file at a time is written`() async throws {
    try await run { stage, folder in
      let files = try #require(stage.operations.watch.recordings)
      #expect(files.beginsForOperator())
      let busy = try await stage.send("POST", "/recording")
      #expect(busy.status == 429 && busy.headers["retry-after"] == "1")
      try await violate(stage)
      try await until { try await stage.metric("longlink_recordings_skipped_total") == 1 }
      files.giveUp()
      // Another process may have the directory, too.
      let other = try Folder.open(folder.path)
      #expect(try other.lock())
      #expect(try await stage.send("POST", "/recording").status == 429)
      #expect(folder.names.isEmpty)
      other.unlock()
      #expect(try await stage.send("POST", "/recording").status == 201)
    }
  }

  @Test func `without a directory there are no files, and without a ring nothing`() async throws {
    try await OpsStage.run { stage in
      let reply = try await stage.send("POST", "/recording")
      #expect(reply.status == 409 && reply.body.contains("recordingsDirectory"))
    }
    try await run(server: { $0.recorderBytes = 0 }) { stage, folder in
      #expect(try await stage.request("/recording").status == 404)
      #expect(try await stage.send("POST", "/recording").status == 404)
      try await violate(stage)
      try await until {
        try await stage.metric("longlink_violations_total{name=\"lengthOverLimit\"}") == 1
      }
      #expect(folder.names.isEmpty)
    }
  }

  @Test func `a file that cannot be written is an error that says why`() async throws {
    let parent = RecordingFolder()
    try parent.write("file", [])
    let lines = LogLines()
    try await OpsStage.run {
      $0.recordingsDirectory = parent.path + "/file"
      $0.logger = lines.logger(from: .error)
    } _: { stage in
      let reply = try await stage.send("POST", "/recording")
      #expect(reply.status == 500 && reply.body.contains("ENOTDIR"))
      #expect(try await stage.metric("longlink_recordings_failed_total") == 1)
      // The next one is tried again.
      #expect(try await stage.send("POST", "/recording").status == 500)
      // A client does not make it try all the time.
      for _ in 0..<3 { try await violate(stage) }
      try await until {
        try await stage.metric("longlink_recordings_skipped_total") == 2
      }
      #expect(try await stage.metric("longlink_recordings_failed_total") == 3)
    }
    let messages = lines.all.map(\.message)
    #expect(messages.first == "The directory for recordings cannot be used")
    #expect(messages.contains("Could not write a recording"))
  }

  // MARK: Files of links

  @Test func `a violation's file has the goaway, while the link has not ended`() async throws {
    try await run(server: { $0.recordsBodies = true }) { stage, folder in
      let client = try await stage.client()
      _ = try await client.request(OpsStage.echo, Array("a body".utf8))
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      let peer = try await RawPeer.connect(to: port)
      defer { peer.close() }
      peer.send([UInt8](repeating: 0xFF, count: 64))
      try await until { !folder.names.isEmpty }
      let name = try #require(folder.names.first)
      #expect(name.hasSuffix("Z-lengthOverLimit.pcapng"))
      let bytes = try folder.read(name)
      #expect(String(decoding: bytes, as: UTF8.self).contains("a body"))
      let recording = try RecordingFile(bytes)
      // Both connections of the loop are there.
      expectReplayed(recording, connections: 2)
      let sent = recording.packets.compactMap { packet -> UInt8? in
        guard packet.connection == 2, case .frame(.sent, let kept, _) = packet.content else {
          return nil
        }
        return kept.first
      }
      #expect(sent.last.map { $0 & 0x3F } == FrameKind.goaway.rawValue)
    }
  }

  @Test func `a flood of violations makes one file of each rule`() async throws {
    try await run(server: { $0.addresses.maxConnectionRate = 100_000 }) { stage, folder in
      // A frame of an unknown kind, and one that is too long.
      let unknown = [0x3F] + [UInt8](repeating: 0, count: 31)
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<1_000 {
          if number >= 32 { await group.next() }
          group.addTask {
            try? await violate(
              stage, number % 2 == 0 ? unknown : [UInt8](repeating: 0xFF, count: 64))
          }
        }
      }
      try await until {
        let metrics = try await stage.request("/metrics")
        let files = metrics.body.split(separator: "\n").count {
          $0.hasPrefix("longlink_recordings_total{")
        }
        return files == 2 && metrics.metric("longlink_recordings_skipped_total") == 998
      }
      #expect(folder.names.count == 2)
    }
  }

  @Test func `reasons of the configuration cause files too`() async throws {
    try await run {
      $0.recordingReasons = ["peer"]
    } _: { stage, folder in
      for _ in 0..<2 {
        let client = try await stage.client()
        await client.close(within: .zero)
      }
      try await until { try await stage.metric("longlink_recordings_skipped_total") == 1 }
      try await until { folder.names.count == 1 }
      let name = try #require(folder.names.first)
      #expect(name.hasSuffix("Z-peer.pcapng"))
      expectReplayed(try RecordingFile(try folder.read(name)), connections: 1)
    }
  }

  @Test func `a client that says nothing causes a file only if it is asked for`() async throws {
    try await run {
      $0.recordingReasons = ["first_frame"]
    } server: {
      $0.timeouts.firstFrame = .milliseconds(100)
    } _: { stage, folder in
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      let peer = try await RawPeer.connect(to: port)
      defer { peer.close() }
      try await until { !folder.names.isEmpty }
      #expect(folder.names.first?.hasSuffix("Z-first_frame.pcapng") == true)
      #expect(try await stage.metric("longlink_recordings_skipped_total") == 0)
    }
  }

  @Test func `files are written also if the port is not started`() async throws {
    let folder = RecordingFolder()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    let server = try LongLinkServer(configuration)
    var settings = OperationsConfiguration()
    settings.recordingsDirectory = folder.path
    settings.logger.logLevel = .critical
    _ = try OperationsPort(for: server, settings)
    try await server.start()
    let port = Int(server.endpoint.description.split(separator: ":").last ?? "") ?? 0
    let peer = try await RawPeer.connect(to: port)
    peer.send([UInt8](repeating: 0xFF, count: 64))
    try await until { folder.names.count == 1 }
    peer.close()
    await server.shutDown(within: .zero)
  }
}
#endif
