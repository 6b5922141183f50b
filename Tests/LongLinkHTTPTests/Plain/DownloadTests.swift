// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
@testable import LongLinkHTTP
import Synchronization
import Testing

extension HTTPTests {
  /// Responses that become files.
  @Suite struct DownloadTests {
    @Test func `a download is resumed with its tag, and never mixed`() async throws {
      let version = Mutex(1)
      let cutsAt = Mutex<Int?>(400)
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let tag = "\"v\(version.withLock { $0 })\""
          let whole = Array(
            repeating: UInt8(ascii: version.withLock { $0 } == 1 ? "a" : "b"), count: 1000)
          var start = 0
          if let range = request["range"], request["if-range"] == tag {
            start = Int(range.dropFirst(6).dropLast()) ?? 0
          }
          let head =
            start > 0
            ? "HTTP/1.1 206 Part\r\nContent-Range: bytes \(start)-999/1000" : "HTTP/1.1 200 OK"
          try await connection.send(
            "\(head)\r\nETag: \(tag)\r\nContent-Length: \(1000 - start)\r\n\r\n")
          if let cut = cutsAt.withLock({ $0.take() }) {
            try await connection.send(Array(whole[start..<cut]))
            return
          }
          try await connection.send(Array(whole[start...]))
        }
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            func download() async throws -> HTTPDownload {
              var request = HTTPRequest(.get, server.url("/f"))
              request.retry = .never
              return try await service.download(request, to: folder + "/f")
            }
            func names() throws -> [String] {
              try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            }
            await #expect(throws: HTTPDownloadError.self) { try await download() }
            #expect(try names() == ["f.part", "f.part.etag"])
            let resumed = try await download()
            #expect(resumed == HTTPDownload(bytes: 1000, keptBytes: 400))
            #expect(try names() == ["f"])
            #expect(server.received.last?["range"] == "bytes=400-")
            #expect(server.received.last?["accept-encoding"] == "identity")
            // Another version in the middle: from the beginning.
            cutsAt.withLock { $0 = 300 }
            await #expect(throws: HTTPDownloadError.self) { try await download() }
            version.withLock { $0 = 2 }
            #expect(try await download() == HTTPDownload(bytes: 1000, keptBytes: 0))
            let data = try Data(contentsOf: URL(filePath: folder + "/f"))
            #expect(data == Data(repeating: UInt8(ascii: "b"), count: 1000))
            #expect(try names() == ["f"])
          }
        }
      }
    }

    @Test(arguments: [241, 242, 255])
    func `a download to a long name goes on`(length: Int) async throws {
      try await RawServer.run { connection in
        while let request = try await connection.request() {
          let head = "ETag: \"v\"\r\nContent-Length: "
          if request["range"] == "bytes=3-" {
            try await connection.send(
              "HTTP/1.1 206 Part\r\nContent-Range: bytes 3-5/6\r\n\(head)3\r\n\r\ndef")
          } else {
            return try await connection.send("HTTP/1.1 200 OK\r\n\(head)6\r\n\r\nabc")
          }
        }
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            let name = String(repeating: "n", count: length)
            let request = HTTPRequest(.get, server.url())
            await #expect(throws: HTTPDownloadError.self) {
              try await service.download(request, to: folder + "/" + name)
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(names.count == 2 && names.contains(name + ".part") == (length <= 241))
            let download = try await service.download(request, to: folder + "/" + name)
            #expect(download == HTTPDownload(bytes: 6, keptBytes: 3))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [name])
          }
        }
      }
    }

    @Test func `a download without room for its record is still whole`() async throws {
      try await RawServer.answering { _ in
        http("200 OK", ["ETag: \"v\""], "abc")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            // A folder stands where the record would go.
            try FileManager.default.createDirectory(
              atPath: folder + "/f.part.etag", withIntermediateDirectories: false)
            let download = try await service.download(
              HTTPRequest(.get, server.url()), to: folder + "/f")
            #expect(download.bytes == 3)
          }
        }
      }
    }

    @Test func `a download that has ended leaves its file to the next one at once`() async throws {
      try await RawServer.answering { _ in
        http("404 Not Found")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            for _ in 0..<200 {
              do {
                try await service.download(HTTPRequest(.get, server.url()), to: folder + "/f")
              } catch HTTPDownloadError.exchange(let error) {
                #expect(error.response?.rawValue == 404)
              }
            }
          }
        }
      }
    }

    @Test func `a range that ends before the file, and does not say so, is no whole file`()
      async throws
    {
      try await RawServer.answering { _ in
        http("206 Part", ["ETag: \"t\"", "Content-Range: bytes 2-3/*"], "es")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            try Data("fr".utf8).write(to: URL(filePath: folder + "/f.part"))
            let record = "longlink download 2\n\(server.url())\n\"t\"\n5\nend\n"
            try Data(record.utf8).write(to: URL(filePath: folder + "/f.part.etag"))
            await #expect(throws: HTTPDownloadError.self) {
              try await service.download(HTTPRequest(.get, server.url()), to: folder + "/f")
            }
            #expect(!FileManager.default.fileExists(atPath: folder + "/f"))
            #expect(try Data(contentsOf: URL(filePath: folder + "/f.part")) == Data("fres".utf8))
          }
        }
      }
    }

    @Test func `ranges that do not fit are not written`() async throws {
      #expect(ContentRange("bytes 5-9/10")?.first == 5)
      for text in ["bytes 5-9/9", "bytes 9-5/10", "bytes */10", "items 1-2/3", "bytes 1-2", nil] {
        #expect(ContentRange(text) == nil)
      }
      let range = Mutex("")
      try await RawServer.answering { request in
        request["range"] == nil
          ? http("200 OK", ["ETag: \"t\""], "fresh")
          : http(
            "206 Part", ["ETag: \"t\"", "Content-Range: bytes \(range.withLock { $0 })"], "esh")
      } body: { server in
        try await withFolder { folder in
          try await withService { service in
            // One begins elsewhere, one is of another whole length, and one has no length.
            for (text, kept) in [("1-4/5", 0), ("2-4/6", 0), ("2-4/*", 2), ("2-4/5", 2)] {
              range.withLock { $0 = text }
              try Data("fr".utf8).write(to: URL(filePath: folder + "/f.part"))
              let record = "longlink download 2\n\(server.url())\n\"t\"\n5\nend\n"
              try Data(record.utf8).write(to: URL(filePath: folder + "/f.part.etag"))
              let download = try await service.download(
                HTTPRequest(.get, server.url()), to: folder + "/f")
              #expect(download.keptBytes == kept, "\(text)")
              #expect(try Data(contentsOf: URL(filePath: folder + "/f")) == Data("fresh".utf8))
            }
          }
        }
      }
    }
  }
}

/// Runs a body with a folder that is removed afterwards.
func withFolder(_ body: (String) async throws -> Void) async throws {
  let folder = FileManager.default.temporaryDirectory
    .appending(path: "longlink-http-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try await body(folder.path)
}
#endif
