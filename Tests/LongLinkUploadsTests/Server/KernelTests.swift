// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkUploadMessages
import Logging
import Testing

@testable import LongLinkUploadsServer

/// The routes over real sockets, with real threads for files.
@Suite(.timeLimit(.minutes(5))) struct KernelTests {
  private static let bytes = StoreStage.bytes(1_000_000)

  /// Uploads all bytes, each append behind a takeover.
  private func upload(to client: LongLinkClient) async throws -> String {
    let create = CreateRequest(
      parts: [StoreStage.file("a", 300_000), StoreStage.file("b", nil)])
    let id = try await client.request(UploadMethods.create, create).id
    while true {
      let request = StatusRequest(id: id, takesOver: true)
      let status = try await client.request(UploadMethods.status, request)
      guard status.offset < UInt64(Self.bytes.count) else {
        let finish = FinishRequest(
          id: id, generation: status.generation, size: status.offset,
          sha256: SHA256Digest.hash(of: Self.bytes))
        #expect(try await client.request(UploadMethods.finish, finish).names == ["a", "b"])
        return id
      }
      let append = AppendRequest(id: id, generation: status.generation, offset: status.offset)
      let rest = Self.bytes[Int(status.offset)...].prefix(200_000)
      _ = try await client.sendItems(UploadMethods.append, append) { writer in
        for start in stride(from: rest.startIndex, to: rest.endIndex, by: 30_000) {
          try await writer.write(Array(rest[start..<min(start + 30_000, rest.endIndex)]))
        }
      }
    }
  }

  @Test(arguments: [true, false])
  func `a route of one of its message types traps, before or after it`(isFirst: Bool) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [isFirst] in
      let directory = UploadDirectory()
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
      if isFirst { server.route(12, line: 1_001) { $0.body } }
      try server.routeUploads(in: directory.path, line: 1_002)
      server.route(16, line: 1_003) { $0.body }
    }
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    let (type, first, second) = isFirst ? (12, 1_001, 1_002) : (16, 1_002, 1_003)
    #expect(
      said.contains(
        """
        the route of message type \(type) is set twice: first at \(#fileID):\(first), \
        then at \(#fileID):\(second)
        """))
  }

  @Test func `several uploads at once, on threads of their own`() async throws {
    let directory = UploadDirectory()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.logger.logLevel = .critical
    configuration.loops = 2
    let server = try LongLinkServer(configuration)
    let receiver = try server.routeUploads(in: directory.path, fileThreads: 2)
    try await server.start()
    var clients: [LongLinkClient] = []
    for _ in 0..<4 {
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      clients.append(try LongLinkClient(configuration))
    }
    let ids = try await withThrowingTaskGroup(of: String.self) { group in
      for client in clients { group.addTask { try await upload(to: client) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    for id in ids {
      #expect(directory.file("\(id)/a") == Array(Self.bytes[..<300_000]))
      #expect(directory.file("\(id)/b") == Array(Self.bytes[300_000...]))
    }
    let counters = receiver.counters
    #expect(counters.finished == 4 && counters.appends == 20 && counters.takeovers == 24)
    #expect(counters.bytesWritten == 4_000_000 && counters.unfinished == 0)
    for client in clients { await client.close() }
    await server.shutDown(within: .seconds(1))
    // The directory is free when the server has stopped.
    _ = try StoreStage(in: directory)
  }
}
