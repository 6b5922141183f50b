// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkServer
import LongLinkTesting
@testable import LongLinkUploads
import Testing

/// A client and a scripted server of uploads, in a simulation.
struct UploadStage: Sendable {
  let simulation: Simulation
  let uploads = ScriptedUploads()
  let server: SimulatedProcess
  let client: LongLinkClient
  var uploader: Uploader { Uploader(client) }

  static let address = SocketAddress.ipv4(10, 0, 0, 1, port: 4_000)

  private init(_ simulation: Simulation) throws {
    self.simulation = simulation
    let uploads = uploads
    uploads.script.loseConnection = { [network = simulation.network] in network.loseAllLinks() }
    server = simulation.process(named: "server") { run in
      let server = try LongLinkServer(
        ServerConfiguration(listen: [Endpoint(UploadStage.address)]), on: [run.loop])
      uploads.route(server) { run.isAlive }
      run.atEnd { await server.shutDown(within: .zero) }
      try await server.start()
    }
    client = try LongLinkClient(to: Endpoint(UploadStage.address), on: simulation.mainLoop)
  }

  /// Runs a test in a simulation, and checks that nothing has left it.
  static func run(
    seed: UInt64 = 1, _ body: @escaping @Sendable (UploadStage) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: seed)
    try await simulation.run {
      let stage = try UploadStage(simulation)
      try await stage.server.start()
      let outcome: Result<Void, any Error>
      do {
        outcome = .success(try await body(stage))
      } catch {
        outcome = .failure(error)
      }
      await stage.client.close()
      stage.server.crash()
      try outcome.get()
    }
    #expect(simulation.escapes.isEmpty)
  }

  func crashServer(for duration: Duration) async throws {
    server.crash()
    try await simulation.sleep(for: duration)
    try await server.start()
  }
}

/// A folder for the files of one test.
final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appending(path: "longlink-uploads-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appending(path: name).path }

  /// Writes a file in place, so that its inode stays.
  @discardableResult
  func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = path(name)
    try Data(bytes).write(to: URL(filePath: path))
    return path
  }
}

/// Bytes that differ everywhere.
func sampleBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var generator = SeededGenerator(seed: seed)
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + 8)
  while bytes.count < count {
    let word = generator.next()
    for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(shift)))) }
  }
  return Array(bytes.prefix(count))
}

/// A sequence of pieces.
struct Pieces: AsyncSequence, Sendable {
  typealias Element = [UInt8]
  let bytes: [UInt8]
  var size = 1_000
  var failsAt: Int?

  struct Broken: Error {}

  func makeAsyncIterator() -> Iterator { Iterator(pieces: self) }

  struct Iterator: AsyncIteratorProtocol {
    let pieces: Pieces
    var position = 0

    mutating func next() async throws -> [UInt8]? {
      if let end = pieces.failsAt, position >= end { throw Broken() }
      guard position < pieces.bytes.count else { return nil }
      let piece = pieces.bytes[position..<Swift.min(position + pieces.size, pieces.bytes.count)]
      position += piece.count
      return Array(piece)
    }
  }
}

extension UploadContent {
  /// A sequence that begins anywhere.
  static func pieces(
    _ bytes: [UInt8], length: UInt64?, size: Int = 1_000, failsAt: Int? = nil
  ) -> UploadContent {
    .sequence(length: length) { offset in
      Pieces(bytes: Array(bytes.dropFirst(Int(offset))), size: size, failsAt: failsAt)
    }
  }
}

extension TemporaryFolder {
  /// Appends to a file, which keeps its inode.
  func append(_ bytes: [UInt8], to path: String) throws {
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    try file.seekToEnd()
    try file.write(contentsOf: bytes)
    try file.close()
  }
}
