// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkServer
import LongLinkUploads
import LongLinkUploadsServer
import Synchronization
import Testing

@testable import LongLinkCommand

/// A server of uploads in this process, and a folder for its files and the client's.
final class UploadPlace: Sendable {
  let folder: URL
  let server: LongLinkServer
  let finished = Mutex<[FinishedUpload]>([])

  var port: String {
    guard let port = server.addresses.first?.port else { return "0" }
    return "\(port)"
  }

  private init() throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("uploads"), withIntermediateDirectories: true)
    server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
  }

  static func run(_ body: (UploadPlace) async throws -> Void) async throws {
    let place = try UploadPlace()
    defer { try? FileManager.default.removeItem(at: place.folder) }
    try place.server.routeUploads(in: place.path("uploads")) { [weak place] upload in
      place?.finished.withLock { $0.append(upload) }
    }
    try await place.server.start()
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await body(place))
    } catch {
      outcome = .failure(error)
    }
    await place.server.shutDown(within: .zero)
    try outcome.get()
  }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  func write(_ name: String, _ bytes: Data) throws -> String {
    try bytes.write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }

  func kept(_ id: String, _ name: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: path("uploads/\(id)/\(name)")))
  }

  /// Whether the server has parts of an upload.
  var hasUnfinished: Bool {
    get throws {
      let names = try FileManager.default.contentsOfDirectory(atPath: path("uploads/.unfinished"))
      return names.contains { $0.count == 32 }
    }
  }

  func upload(_ arguments: String...) throws -> Tool {
    try Tool(["upload", "--port", port] + arguments)
  }
}

/// What `longlink upload` shows, and how it ends.
@Suite(.timeLimit(.minutes(15))) struct UploadTests {
  private let bytes = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })

  @Test func `standard output has the ID alone, and the server has the files`() async throws {
    try await UploadPlace.run { place in
      let first = try place.write("a.jpg", bytes)
      let second = try place.write("b", Data())
      let upload = try await place.upload(
        first, second, "--field", "title=night=1", "--field", "-x=-y"
      ).finish()
      #expect(upload.code == 0, "\(upload.errors)")
      #expect(upload.lines.count == 1)
      let id = upload.lines.first ?? ""
      #expect(try place.kept(id, "a.jpg") == bytes)
      #expect(try place.kept(id, "b") == Data())
      let fields = try JSONSerialization.jsonObject(with: place.kept(id, "fields.json"))
      #expect(fields as? [String: String] == ["title": "night=1", "-x": "-y"])
      #expect(place.finished.withLock { $0.map(\.id) } == [id])
    }
  }

  @Test func `an upload that was killed goes on with its record`() async throws {
    try await UploadPlace.run { place in
      let path = try place.write("a", bytes)
      let record = place.path("record")
      // Each second has a line.
      let first = try place.upload(path, "--resume", record, "--rate", "50000")
      let line = try #require(await first.nextErrorLine())
      #expect(line.contains(" of 2.0 MB"), "\(line)")
      first.send(SIGKILL)
      _ = await first.finish()
      #expect(FileManager.default.fileExists(atPath: record))
      let other = try place.write("other", bytes)
      #expect(try await place.upload(other, "--resume", record).finish().code == 64)
      let second = try await place.upload(path, "--resume", record).finish()
      #expect(second.code == 0, "\(second.errors)")
      #expect(try place.kept(second.lines.first ?? "", "a") == bytes)
      #expect(!FileManager.default.fileExists(atPath: record))
      #expect(place.finished.withLock { $0.count } == 1)
    }
  }

  @Test func `an upload goes on when the server was killed and started again`() async throws {
    try await UploadPlace.run { place in
      let path = try place.write("a", bytes)
      let server = try await RunningServer("--uploads", place.path("served"))
      let upload = try Tool(["upload", path, "--port", server.port, "--rate", "400000"])
      _ = try #require(await upload.nextErrorLine())
      server.tool.send(SIGKILL)
      _ = await server.tool.finish()
      let next = try Tool(
        ["serve", "--port", server.port, "--uploads", place.path("served")])
      #expect(await next.nextLine() == "listening on 127.0.0.1:\(server.port)")
      let end = await upload.finish()
      #expect(end.code == 0, "\(end.errors)")
      let kept = place.path("served/\(end.lines.first ?? "")/a")
      #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) == bytes)
    }
  }

  @Test func `a file that changes meanwhile ends with 1`() async throws {
    try await UploadPlace.run { place in
      let path = try place.write("a", bytes)
      let upload = try place.upload(path, "--rate", "50000")
      _ = try #require(await upload.nextErrorLine())
      let file = try #require(FileHandle(forWritingAtPath: path))
      try file.seekToEnd()
      try file.write(contentsOf: bytes)
      try file.close()
      let end = await upload.finish()
      #expect(end.code == 1)
      #expect(end.output.isEmpty)
      #expect(end.errors.contains("the file has grown"), "\(end.errors)")
    }
  }

  @Test(arguments: [false, true])
  func `a signal removes the upload, unless there is a record`(hasRecord: Bool) async throws {
    try await UploadPlace.run { place in
      let path = try place.write("a", bytes)
      let upload =
        hasRecord
        ? try place.upload(path, "--rate", "50000", "--resume", place.path("record"))
        : try place.upload(path, "--rate", "50000")
      _ = try #require(await upload.nextErrorLine())
      upload.send(SIGINT)
      #expect(await upload.finish().code == 130)
      #expect(try place.hasUnfinished == hasRecord)
    }
  }

  @Test func `each error has its exit code`() {
    let codes: [(UploadError.Code, Int32)] = [
      (.fileChanged, 1), (.fileGrew, 1), (.fileMissing, 1), (.recordFailed, 1), (.failed, 1),
      (.rejected, 5), (.tooLarge, 5), (.noSpace, 5), (.tooManyUploads, 5), (.takenOver, 5),
      (.forgotten, 5), (.damaged, 6), (.unreachable, 7), (.otherRecord, 64),
    ]
    for (code, status) in codes {
      #expect(UploadCommand.status(of: UploadError(code)) == status, "\(code)")
    }
  }

  @Test func `the progress has a bar and numbers`() {
    var progress = UploadProgress(sent: 750_000, stored: 500_000, total: 1_000_000)
    #expect(UploadPrinter.bar(of: progress) == "[############------      ] ")
    #expect(UploadPrinter.text(of: progress) == "50 %, 500.0 kB of 1.0 MB")
    progress.bytesPerSecond = 250_000
    progress.timeLeft = .milliseconds(1_900)
    #expect(
      UploadPrinter.text(of: progress) == "50 %, 500.0 kB of 1.0 MB, 250.0 kB/s, 2 s left")
    progress.total = nil
    progress.timeLeft = nil
    #expect(UploadPrinter.bar(of: progress) == "")
    #expect(UploadPrinter.text(of: progress) == "500.0 kB, 250.0 kB/s")
    #expect(UploadPrinter.text(of: UploadProgress(total: 0)) == "100 %, 0 B of 0 B")
  }

  @Test func `wrong arguments and files that cannot be read are 64`() async throws {
    let folder = FileManager.default.temporaryDirectory.path
    for arguments in [
      [], ["--field", "x", "f"], ["--field", "=x", "f"], ["--rate", "0", "f"], [folder],
      ["\(folder)/longlink-\(UUID().uuidString)"],
    ] {
      let upload = try await Tool(["upload"] + arguments).finish()
      #expect(upload.code == 64, "\(arguments): \(upload.errors)")
      #expect(upload.output.isEmpty)
    }
  }

  @Test func `no first connection is 3, and a server without uploads is 5`() async throws {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("longlink-\(UUID().uuidString)").path
    try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let server = try await RunningServer()
    let rejected = try await Tool(["upload", path, "--port", server.port]).finish()
    #expect(rejected.code == 5, "\(rejected.errors)")
    #expect(rejected.output.isEmpty)
    server.tool.send(SIGKILL)
    _ = await server.tool.finish()
    let unconnected = try await Tool(["upload", path, "--port", server.port]).finish()
    #expect(unconnected.code == 3, "\(unconnected.errors)")
  }
}
