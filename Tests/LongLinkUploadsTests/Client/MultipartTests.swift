// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTestSupport
import LongLinkTesting
@testable import LongLinkUploads
import Testing

/// Forms, read by Python's own parser.
@Suite struct MultipartTests {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static let problem: String? = {
    do {
      _ = try python("", [])
      return nil
    } catch {
      return "\(error)"
    }
  }()

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs a program in Python with a file as its argument.
  private static func python(_ program: String, _ arguments: [String]) throws -> Data {
    let process = Process()
    let (output, errors) = (Pipe(), Pipe())
    process.executableURL = root.appending(path: "Scripts/python.sh")
    process.arguments = ["-c", program] + arguments
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    let text = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: String(decoding: text, as: UTF8.self))
    }
    return data
  }

  private static let parser = """
    import base64, email.parser, json, sys
    message = email.parser.BytesParser().parsebytes(open(sys.argv[1], 'rb').read())
    assert message.is_multipart() and not message.defects, message.defects
    parts = []
    for part in message.get_payload():
        assert not part.defects, part.defects
        assert part.get_content_disposition() == 'form-data'
        headers = dict(part.raw_items())
        text = headers['Content-Disposition'].encode('ascii', 'surrogateescape').decode('utf-8')
        parts.append({
            'disposition': text,
            'type': headers.get('Content-Type'),
            'body': base64.b64encode(part.get_payload(decode=True)).decode()})
    print(json.dumps(parts))
    """

  private struct Parsed: Decodable, Equatable {
    var disposition: String
    var type: String?
    var body: Data
  }

  private func parse(_ form: MultipartForm) async throws -> [Parsed] {
    let prepared = try await PreparedUpload(form.parts)
    var bytes: [UInt8] = []
    for try await piece in prepared.pieces() { bytes += piece }
    #expect(prepared.length == nil || prepared.length == UInt64(bytes.count))
    let folder = try TemporaryFolder()
    let header = "MIME-Version: 1.0\r\nContent-Type: \(form.contentType)\r\n\r\n"
    let path = try folder.write("form", Array(header.utf8) + bytes)
    return try JSONDecoder().decode(
      [Parsed].self, from: try Self.python(Self.parser, [path]))
  }

  @Test(.unless(problem))
  func `python reads a form as it was meant`() async throws {
    let folder = try TemporaryFolder()
    let photo = sampleBytes(100_000) + Array("\r\n--longlink-\r\n\r\n--".utf8)
    let path = try folder.write("harbour.png", photo)
    let name = "a\"b\r\nX-Evil: 1\r\n\\%22é"
    let form = try MultipartForm(
      [
        .field("title", "Harbour\r\nat night"), .field("", ""), .file("photo", at: path),
        .bytes(name, fileName: name, contentType: "text/plain; charset=utf-8", Array("é".utf8)),
        UploadPart("live", fileName: "l", .pieces([13, 10], length: 2)),
      ])
    let parts = try await parse(form)
    let escaped = "a%22b%0D%0AX-Evil: 1%0D%0A\\%22é"
    let expected = [
      Parsed(
        disposition: "form-data; name=\"title\"", type: nil,
        body: Data("Harbour\r\nat night".utf8)),
      Parsed(disposition: "form-data; name=\"\"", type: nil, body: Data()),
      Parsed(
        disposition: "form-data; name=\"photo\"; filename=\"harbour.png\"", type: "image/png",
        body: Data(photo)),
      Parsed(
        disposition: "form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"",
        type: "text/plain; charset=utf-8", body: Data("é".utf8)),
      Parsed(
        disposition: "form-data; name=\"live\"; filename=\"l\"",
        type: "application/octet-stream", body: Data([13, 10])),
    ]
    #expect(parts == expected)
  }

  @Test func `the length is known exactly where that of all parts is`() async throws {
    let known = try MultipartForm([UploadPart("a", .pieces([1, 2], length: 2))])
    var count: UInt64 = 0
    let prepared = try await PreparedUpload(known.parts)
    for try await piece in prepared.pieces() { count += UInt64(piece.count) }
    #expect(prepared.length == count)
    let unknown = try MultipartForm([UploadPart("a", .pieces([1, 2], length: nil))])
    let length = try await PreparedUpload(unknown.parts).length
    #expect(length == nil)
  }

  /// Numbers from a list.
  private struct Listed: RandomNumberGenerator {
    var numbers: [UInt64]

    mutating func next() -> UInt64 { numbers.removeFirst() }
  }

  @Test func `a boundary has 128 random bits, and occurs in no field`() throws {
    let first = "longlink-" + String(repeating: "0", count: 31) + "1"
    let second = "longlink-" + String(repeating: "0", count: 31) + "2"
    for part in [
      UploadPart.field("a", "x-\(first)"), .field(first, ""), .bytes("a", fileName: first, []),
      .field("a", "longlink-longlink-00\(first)"),
    ] {
      var numbers = Listed(numbers: [0, 1, 0, 2])
      #expect(try MultipartForm([part], using: &numbers).boundary == second)
    }
    let boundaries = try (0..<100).map { _ in try MultipartForm([]).boundary }
    #expect(Set(boundaries).count == 100)
    #expect(boundaries.allSatisfy { $0.utf8.count == 41 })
  }

  @Test func `a content type cannot add a header`() {
    let part = UploadPart.bytes("a", fileName: "a", contentType: "text/plain\r\nX: y", [])
    let error = #expect(throws: UploadError.self) { try MultipartForm([part]) }
    #expect(error?.code == .invalidPart)
  }
}
