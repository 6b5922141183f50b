// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport
import LongLinkUploadMessages
@testable import LongLinkUploads
import Synchronization
import Testing

/// What is read of a body.
@Suite struct BodyTests {
  private func read(_ body: [UploadPart], from offset: UInt64 = 0) async throws -> [UInt8] {
    try await read(try await PreparedUpload(body), from: offset)
  }

  private func read(_ body: PreparedUpload, from offset: UInt64 = 0) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await piece in body.pieces(from: offset) {
      #expect(!piece.isEmpty && piece.count <= 65_536)
      bytes += piece
    }
    return bytes
  }

  private func failure(
    _ body: @escaping @Sendable () async throws -> [UInt8]
  ) async -> UploadError.Code? {
    do {
      _ = try await body()
      return nil
    } catch {
      return (error as? UploadError)?.code
    }
  }

  @Test func `parts are read one behind the other, from any offset`() async throws {
    let folder = try TemporaryFolder()
    let file = sampleBytes(150_000)
    let path = try folder.write("file", file)
    let body: [UploadPart] = [
      .field("title", "night"), .file("photo", at: path),
      .file("part", at: path, range: 70_000..<140_001), .bytes("empty", fileName: "e", []),
      UploadPart("live", fileName: "live", .pieces(sampleBytes(3_333), length: 3_333)),
    ]
    let whole = Array("night".utf8) + file + file[70_000..<140_001] + sampleBytes(3_333)
    let prepared = try await PreparedUpload(body)
    #expect(prepared.length == UInt64(whole.count))
    for offset in [0, 1, 4, 5, 6, 70_000, 150_004, 150_005, 150_006, 220_005, 220_006, 223_338] {
      #expect(try await read(prepared, from: UInt64(offset)) == Array(whole[offset...]))
    }
    #expect(try await read(prepared, from: UInt64(whole.count)) == [])
    #expect(
      await failure { try await read(prepared, from: UInt64(whole.count) + 1) } == .wrongLength)
  }

  @Test func `large pieces are cut, and empty ones are no end`() async throws {
    let bytes = sampleBytes(200_000)
    let body: [UploadPart] = [
      UploadPart("a", .bytes(bytes)), UploadPart("b", .pieces(bytes, length: nil, size: 199_999)),
      UploadPart("c", .sequence { _ in Pieces(bytes: [], size: 1) }),
    ]
    let prepared = try await PreparedUpload(body)
    #expect(prepared.length == nil)
    #expect(try await read(prepared) == bytes + bytes)
  }

  @Test func `no more than two pieces are read ahead`() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("file", sampleBytes(10 * 65_536))
    let loop = try EventLoop()
    defer { loop.shutDown() }
    let pieces = FilePieces(
      path: path, identity: try FileIdentity(at: path), range: 0..<655_360, on: loop)
    var count = 0
    while let piece = try await pieces.next() {
      #expect(piece.count == 65_536)
      count += 1
      // It reads on while nobody takes anything, and stops at two.
      let left = min(2, 10 - count)
      while pieces.ahead < left { await Task.yield() }
      #expect(pieces.ahead == left)
    }
    #expect(count == 10)
  }

  @Test func `what is no regular file is refused by its name`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("fifo")
    try #require(unsafe mkfifo(path, 0o600) == 0)
    let expected: [(String, UploadError.Code)] = [
      (folder.path(""), .isDirectory), (path, .notRegularFile),
      (folder.path("none"), .fileMissing), ("/dev/null", .notRegularFile),
    ]
    for (path, code) in expected {
      #expect(await failure { try await read([.file("f", at: path)]) } == code)
    }
    let file = try folder.write("file", [1, 2, 3])
    let beyond: [UploadPart] = [.file("f", at: file, range: 1..<4)]
    #expect(await failure { try await read(beyond) } == .invalidPart)
  }

  private func succeed(_ result: CInt) throws {
    try #require(result == 0)
  }

  /// Changes a file between the preparation and the end of reading.
  private func change(
    _ count: Int = 300_000, _ work: (TemporaryFolder, String) throws -> Void
  ) async throws -> UploadError.Code? {
    let folder = try TemporaryFolder()
    let path = try folder.write("file", sampleBytes(count))
    let prepared = try await PreparedUpload([.file("f", at: path)])
    var pieces = prepared.pieces().makeAsyncIterator()
    var received = 0
    do {
      received += try await pieces.next()?.count ?? 0
      try work(folder, path)
      while let piece = try await pieces.next() { received += piece.count }
      return nil
    } catch {
      // Nothing is made up for what is missing.
      #expect(received <= count)
      return (error as? UploadError)?.code
    }
  }

  @Test func `a file that changes while it is read is an error`() async throws {
    #expect(try await change { folder, path in try folder.append([1], to: path) } == .fileGrew)
    #expect(
      try await change { _, path in try succeed(unsafe truncate(path, 299_999)) } == .fileShrank)
    #expect(
      try await change { _, path in try succeed(unsafe truncate(path, 10)) } == .fileShrank)
    #expect(
      try await change { _, path in
        let date = Date(timeIntervalSince1970: 1_000_000)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
      } == .fileChanged)
    #expect(
      try await change { folder, path in
        let other = try folder.write("other", sampleBytes(300_000, seed: 2))
        try succeed(unsafe rename(other, path))
      } == .fileChanged)
    #expect(
      try await change { _, path in try succeed(unsafe unlink(path)) } == .fileMissing)
    #expect(try await change { _, _ in } == nil)
  }

  @Test func `a sequence has the length that it says`() async throws {
    func code(_ length: UInt64?, failsAt: Int? = nil) async -> UploadError.Code? {
      let body: [UploadPart] = [
        UploadPart("s", .pieces(sampleBytes(5_000), length: length, failsAt: failsAt))
      ]
      return await failure { try await read(body) }
    }
    #expect(await code(5_000) == nil)
    #expect(await code(nil) == nil)
    #expect(await code(5_001) == .wrongLength)
    #expect(await code(4_999) == .wrongLength)
    #expect(await code(0) == .wrongLength)
    #expect(await code(5_000, failsAt: 2_000) == .sourceFailed)
  }

  @Test func `the extension suggests a type, and a given one is checked`() async throws {
    #expect(UploadPart.file("f", at: "/a/b.c/photo.JPG").effectiveContentType == "image/jpeg")
    #expect(UploadPart.file("f", at: "b.c/.png").effectiveContentType == "application/octet-stream")
    #expect(UploadPart.file("f", at: "x").effectiveContentType == "application/octet-stream")
    #expect(UploadPart.field("f", "v").effectiveContentType == nil)
    for type in ["text/plain", "a/b;c=d", "text/html; charset=\"utf-8\"; x=\"a\\\"b\""] {
      #expect(MediaType.isValid(type), "\(type)")
    }
    for type in [
      "", "text", "text/", "/plain", "text/pl ain", "text/plain\r\nX: y", "text/plain;", "a/b;c",
      "a/b; c=\"", "a/b; c=\"\r\n\"", "a/b, c/d", "té/xt",
    ] {
      #expect(!MediaType.isValid(type), "\(type)")
      let body: [UploadPart] = [.bytes("f", fileName: "f", contentType: type, [])]
      #expect(await failure { try await read(body) } == .invalidPart)
    }
  }

  @Test func `what is read of files is hashed in the same step, once`() async throws {
    let folder = try TemporaryFolder()
    let file = sampleBytes(300_000)
    let path = try folder.write("file", file)
    let loop = try EventLoop()
    defer { loop.shutDown() }
    let identity = try FileIdentity(at: path)
    let hash = PrefixHash()
    hash.add([1, 2, 3], at: 0)
    func pieces(_ range: Range<UInt64>, at base: UInt64) -> FilePieces {
      FilePieces(
        path: path, identity: identity, range: range, on: loop, hash: hash, at: base)
    }
    let first = pieces(0..<300_000, at: 3)
    _ = try await first.next()
    // Nobody takes the next two, and they are hashed all the same.
    while hash.count < 3 + 3 * 65_536 { await Task.yield() }
    // Another reader begins further in front, as after a conflict.
    let second = pieces(100_000..<300_000, at: 100_003)
    while try await second.next() != nil {}
    #expect(hash.count == 300_003)
    #expect(hash.sha256 == SHA256Digest.hash(of: [1, 2, 3] + file))
  }
}
