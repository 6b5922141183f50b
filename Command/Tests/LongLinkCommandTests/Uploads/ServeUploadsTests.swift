// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCore
import LongLinkDriver
import LongLinkUploadMessages
import Testing

/// What `longlink serve --uploads` keeps.
@Suite(.timeLimit(.minutes(15))) struct ServeUploadsTests {
  /// A directory that is removed with this object.
  private final class Directory: Sendable {
    let path = NSTemporaryDirectory() + "longlink-uploads-\(UInt64.random(in: 0 ... .max))"

    deinit {
      try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> [UInt8]? {
      FileManager.default.contents(atPath: "\(path)/\(name)").map(Array.init)
    }

    func names(_ folder: String = "") -> [String] {
      ((try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)")) ?? []).sorted()
    }
  }

  private static let bytes: [UInt8] = (0..<2_000_000).map {
    UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8)
  }
  private static let parts = [
    Part(field: "title", size: 1_000), Part(field: "file", fileName: "a.bin", size: 900_000),
    Part(field: "file", fileName: "sub/a.bin"),
  ]

  private func client(of server: RunningServer) throws -> LongLinkClient {
    try LongLinkClient(to: .host("127.0.0.1", port: try #require(UInt16(server.port))))
  }

  @Test func `an upload goes on over servers that are killed within appends`() async throws {
    let directory = Directory()
    let bytes = Self.bytes
    var id = ""
    var acknowledged: UInt64 = 0
    for kill in [3, 0, 5, 2, 1] {
      let server = try await RunningServer("--uploads", directory.path)
      let client = try client(of: server)
      let create = CreateRequest(parts: Self.parts, key: "one")
      let upload = try await client.request(UploadMethods.create, create)
      #expect(id.isEmpty || upload.id == id)
      id = upload.id
      #expect(upload.offset >= acknowledged)
      acknowledged = try await append(bytes, 100_000, upload, of: client)
      _ = try? await append(bytes, 1_500_000, upload, at: acknowledged, of: client) { item in
        if item == kill { server.tool.send(SIGKILL) }
      }
      // If all of it was sent in front of that item, the test is at fault, and does not wait.
      server.tool.send(SIGKILL)
      #expect(await server.tool.finish().code == nil)
      await client.close()
    }
    let server = try await RunningServer("--uploads", directory.path)
    let client = try client(of: server)
    let request = StatusRequest(id: id, takesOver: true)
    let status = try await client.request(UploadMethods.status, request)
    #expect(status.offset >= acknowledged && acknowledged >= 500_000)
    let upload = CreateResponse(id: id, generation: status.generation, offset: status.offset)
    acknowledged = try await append(bytes, bytes.count, upload, of: client)
    #expect(acknowledged == UInt64(bytes.count))
    let finish = FinishRequest(
      id: id, generation: status.generation, size: UInt64(bytes.count),
      sha256: SHA256Digest.hash(of: bytes))
    let reply = try await client.request(UploadMethods.finish, finish)
    #expect(reply.names == ["", "a.bin", "a-2.bin"])
    #expect(directory.names(id) == ["a-2.bin", "a.bin", "fields.json"])
    #expect(directory.file("\(id)/a.bin") == Array(bytes[1_000..<901_000]))
    #expect(directory.file("\(id)/a-2.bin") == Array(bytes[901_000...]))
    #expect(directory.names(".unfinished").isEmpty)
    await client.close()
    server.tool.send(SIGTERM)
    #expect(await server.tool.finish().code == 0)
  }

  /// Appends at most `count` bytes from an upload's offset, or from another one, in one append.
  private func append(
    _ bytes: [UInt8], _ count: Int, _ upload: CreateResponse, at offset: UInt64? = nil,
    of client: LongLinkClient, _ sent: @escaping (Int) -> Void = { _ in }
  ) async throws -> UInt64 {
    let offset = offset ?? upload.offset
    let rest = bytes[Int(offset)...].prefix(count)
    let request = AppendRequest(id: upload.id, generation: upload.generation, offset: offset)
    let response = try await client.sendItems(UploadMethods.append, request) { writer in
      for (number, start) in stride(from: rest.startIndex, to: rest.endIndex, by: 65_536)
        .enumerated()
      {
        try await writer.write(Array(rest[start..<min(start + 65_536, rest.endIndex)]))
        sent(number)
      }
    }
    return try AppendResponse(copying: response).offset
  }

  @Test func `without the option the service is not there`() async throws {
    let server = try await RunningServer()
    let client = try client(of: server)
    let error = await #expect(throws: LongLinkError.self) {
      try await client.request(UploadMethods.status, StatusRequest(id: "x"))
    }
    #expect(error?.response == .unknownType && error?.delivery == .refused)
    await client.close()
    let file = FileManager.default.temporaryDirectory
      .appending(component: "longlink-\(UUID().uuidString)")
    try Data("x".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let upload = try await Tool.run("upload", file.path, "--port", server.port)
    #expect(upload.errors.contains("the server takes no uploads"), "\(upload.errors)")
  }

  @Test func `a directory that another server uses, or that cannot be made, is reported`()
    async throws
  {
    let directory = Directory()
    let server = try await RunningServer("--uploads", directory.path)
    let second = try await Tool.run("serve", "--port", "0", "--uploads", directory.path)
    #expect(second.code == 1 && second.output.isEmpty)
    #expect(second.errors.contains("another server uses it"))
    let missing = try await Tool.run("serve", "--port", "0", "--uploads", directory.path + "/a/b")
    #expect(missing.code == 1 && missing.errors.contains("directory"))
    _ = server
  }
}
