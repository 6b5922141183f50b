// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkUploadMessages
import Synchronization
import Testing

/// `longlink upload --resume` and `longlink serve --uploads` that are killed at random points.
///
/// `LONGLINK_UPLOAD_KILLS` is the number of kills. What is sent twice is counted by a relay between
/// the two: all bytes that the client has sent, less those that the server has on its disk.
@Suite(.timeLimit(.minutes(30))) struct UploadKillTests {
  private static let kills =
    ProcessInfo.processInfo.environment["LONGLINK_UPLOAD_KILLS"].flatMap(Int.init) ?? 6
  private static let size = 24 << 20
  /// An append, and the window of its stream.
  private static let mostTwice = 8 << 20 + 65_536
  /// The headers of a file's items, hello, metadata and requests.
  private static let overhead = 32_768

  private enum Event {
    /// The process has been killed by the relay, for the attempt of this number.
    case killed(Int)
    case uploaded(Finished)
  }

  /// The processes and what is between them.
  private final class Stage {
    let folder = URL(fileURLWithPath: NSTemporaryDirectory() + "longlink-\(UUID().uuidString)")
    let relay: CountingRelay
    var server: RunningServer
    let events: AsyncStream<Event>
    let event: AsyncStream<Event>.Continuation
    var upload: Tool?
    /// The number of times that a kill was prepared.
    var attempt = 0

    init() async throws {
      (events, event) = AsyncStream.makeStream()
      relay = try CountingRelay()
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      server = try await RunningServer("--uploads", folder.path + "/kept")
      relay.open(to: server.port)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func names(_ folder: String) -> [String] {
      let path = self.folder.path + "/kept/" + folder
      return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [])
        .filter { $0.count == 32 }
    }

    func startUpload() throws {
      let upload = try Tool([
        "upload", folder.path + "/file", "--port", relay.port, "--resume", folder.path + "/record",
      ])
      self.upload = upload
      Task { [event] in event.yield(.uploaded(await upload.finish())) }
    }

    /// How many bytes of the upload are durable. Stops the append that runs, so that it is true.
    func durable() async throws -> Int {
      if !names("").isEmpty { return UploadKillTests.size }
      guard let id = names(".unfinished").first else { return 0 }
      let client = try LongLinkClient(
        to: .host("127.0.0.1", port: try #require(UInt16(server.port))))
      let request = StatusRequest(id: id, takesOver: true)
      let status = try await client.request(UploadMethods.status, request)
      await client.close()
      return Int(status.offset)
    }
  }

  /// After how many bytes the next kill is: anywhere, in the first exchanges, or about the end.
  private static func point(_ left: Int) -> Int {
    switch Int.random(in: 0..<5) {
    case 0: .random(in: 0..<800)
    case 1: max(0, left + .random(in: -500..<1_500))
    default: .random(in: 0..<12 << 20)
    }
  }

  @Test func `kills of either side lose nothing, and cost an append at most`() async throws {
    let stage = try await Stage()
    let random = try #require(FileHandle(forReadingAtPath: "/dev/urandom"))
    var (kills, uploads, most, all) = (0, 0, 0, 0)
    while kills < Self.kills {
      let bytes = try #require(try random.read(upToCount: Self.size))
      try bytes.write(to: stage.folder.appendingPathComponent("file"))
      let outcome = try await run(stage, upTo: Self.kills - kills)
      kills += outcome.kills
      uploads += 1
      most = max(most, outcome.mostTwice)
      all += outcome.twice
      #expect(outcome.mostTwice <= Self.mostTwice + Self.overhead)
      let kept = "\(stage.folder.path)/kept/\(outcome.id)"
      let file = try Data(contentsOf: URL(fileURLWithPath: kept + "/file"))
      #expect(SHA256Digest.hash(of: [UInt8](file)) == SHA256Digest.hash(of: [UInt8](bytes)))
      #expect(stage.names("") == [outcome.id] && stage.names(".unfinished").isEmpty)
      #expect(!FileManager.default.fileExists(atPath: stage.folder.path + "/record"))
      try FileManager.default.removeItem(atPath: kept)
    }
    print(
      "upload: \(kills) kills in \(uploads) uploads of \(Self.size) bytes; sent twice after one "
        + "kill at most \(most) bytes, in all \(all)")
  }

  private struct Outcome {
    var id = ""
    var kills = 0
    /// The bytes that were sent twice in all, and the most after one kill.
    var twice = 0
    var mostTwice = 0
  }

  /// Uploads the file while one process after the other is killed.
  private func run(_ stage: Stage, upTo mostKills: Int) async throws -> Outcome {
    var outcome = Outcome()
    let begin = stage.relay.sent
    try stage.startUpload()
    var killsServer = false
    func arm() async throws {
      killsServer = Bool.random()
      guard outcome.kills < mostKills, let upload = stage.upload else { return }
      let victim = killsServer ? stage.server.tool : upload
      stage.attempt += 1
      let left = Self.size - max(0, stage.relay.sent - begin - outcome.twice)
      stage.relay.after(Self.point(left)) { [event = stage.event, attempt = stage.attempt] in
        victim.send(SIGKILL)
        event.yield(.killed(attempt))
      }
    }
    try await arm()
    for await event in stage.events {
      if case .uploaded(let end) = event {
        // The one that was killed has ended, too; that is told apart below.
        guard let code = end.code else { continue }
        stage.relay.giveUp()
        stage.attempt += 1
        if code == 3 {
          // The server was killed during the first handshake.
          try stage.startUpload()
          try await arm()
          continue
        }
        #expect(code == 0, "\(end.errors)")
        outcome.id = end.lines.first ?? ""
        return outcome
      }
      // It may have come too late, for an upload that has ended.
      guard case .killed(stage.attempt) = event else { continue }
      outcome.kills += 1
      stage.relay.cut()
      if killsServer {
        _ = await stage.server.tool.finish()
        stage.server = try await RunningServer("--uploads", stage.folder.path + "/kept")
      }
      let twice = stage.relay.sent - begin - (try await stage.durable())
      outcome.mostTwice = max(outcome.mostTwice, twice - outcome.twice)
      outcome.twice = max(outcome.twice, twice)
      stage.relay.open(to: stage.server.port)
      if !killsServer { try stage.startUpload() }
      try await arm()
    }
    return outcome
  }
}
