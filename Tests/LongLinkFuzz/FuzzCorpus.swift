// SPDX-License-Identifier: Apache-2.0

package import Foundation
import LongLinkCore
import LongLinkDialects

/// What fuzzers begin with: the test vectors, and frames of layouts that a seed describes.
package enum FuzzCorpus {
  /// The inputs for a target, made from the files of `Protocols/Vectors`.
  package static func inputs(
    for target: FuzzTarget, vectors: URL
  ) throws -> [[UInt8]] {
    let made: [[UInt8]] =
      switch target {
      case .native: try streams(vectors).map { $0.bytes }
      case .bodies: try streams(vectors).flatMap { bodies(in: $0.bytes) } + uploads(vectors)
      case .layout: try files(vectors.appending(path: "Dialects"), "json").map { Array($0) }
      case .client, .shortClient:
        try streams(vectors).filter { !$0.isFromClient }.map { connection($0.bytes) }
      case .server, .shortServer:
        try streams(vectors).filter { $0.isFromClient }.map { connection($0.bytes) }
      case .dialect: (0..<64).compactMap { conversation($0, isDelimited: false) }
      case .delimiter: (0..<64).compactMap { conversation($0, isDelimited: true) }
      case .dialectClient, .dialectServer: (0..<64).map { commands($0) }
      case .xml: ReaderFuzz.xmlSeeds
      case .json: ReaderFuzz.jsonSeeds
      case .proxy: ProxyFuzz.seeds
      case .tlsClient, .tlsServer: TLSFuzz.seeds
      case .handshake: HandshakeFuzz.seeds
      case .recording: RecordingFuzz.seeds
      }
    // What libFuzzer cuts anyway is not worth its space.
    return made.filter { (1...4096).contains($0.count) }
  }

  /// The words that a target's inputs may be made of, as a dictionary of libFuzzer. What has none
  /// of its own gets those of the JSON form of dialects.
  package static func words(for target: FuzzTarget, vectors: URL) throws -> String {
    switch target {
    case .xml: return ReaderFuzz.xmlWords.map { "\"\($0)\"\n" }.joined()
    case .json: return ReaderFuzz.jsonWords.map { "\"\($0)\"\n" }.joined()
    default: return try layoutWords(vectors)
    }
  }

  private static func layoutWords(_ vectors: URL) throws -> String {
    let text = try files(vectors.appending(path: "Dialects"), "json")
      .map { String(decoding: $0, as: UTF8.self) }.joined()
    let parts = text.split(separator: "\"", omittingEmptySubsequences: false)
    let words = parts.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    return Set(words).sorted().map { "\"\\\"\($0)\\\"\"\n" }.joined()
  }

  // MARK: - Test vectors

  private static func files(_ folder: URL, _ kind: String) throws -> [Data] {
    try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == kind }.sorted { $0.path < $1.path }
      .map { try Data(contentsOf: $0) }
  }

  private static func streams(_ vectors: URL) throws -> [(isFromClient: Bool, bytes: [UInt8])] {
    try files(vectors, "txt").flatMap { file in
      String(decoding: file, as: UTF8.self).split(separator: "\n\n").map { block in
        var (isFromClient, bytes) = (true, [UInt8]())
        for line in block.split(separator: "\n") {
          if line == "from: server" { isFromClient = false }
          guard line.hasPrefix("hex: ") else { continue }
          for word in line.dropFirst(5).split(separator: " ") { bytes += self.bytes(of: word) }
        }
        return (isFromClient, bytes)
      }
    }
  }

  /// Hexadecimal digits, and perhaps how many times they stand; too many are left out.
  private static func bytes(of word: Substring) -> [UInt8] {
    let parts = word.split(separator: "*")
    let digits = Array(parts[0])
    let times = parts.count > 1 ? Int(parts[1]) ?? 1 : 1
    let piece = stride(from: 0, to: digits.count - 1, by: 2).compactMap { index in
      UInt8(String(digits[index...index + 1]), radix: 16)
    }
    return (0..<min(times, 4096 / max(1, piece.count))).flatMap { _ in piece }
  }

  /// The bodies of frames, behind the number of the message that each may be.
  private static func bodies(in bytes: [UInt8]) -> [[UInt8]] {
    var (bodies, place) = ([[UInt8]](), 0)
    while place + 16 <= bytes.count {
      let length = bytes[place + 8..<place + 12].reduce(0) { $0 << 8 | Int($1) }
      let body = place + 16..<place + 16 + length
      guard body.upperBound <= bytes.count else { break }
      let choice: UInt8? =
        switch bytes[place] & 0x3F {
        case 0x0A: 0
        case 0x0B: 1
        case 0x0C: 2
        case 0x00 where bytes[place] & 0x80 != 0 && length > 2: 3
        default: nil
        }
      if let choice { bodies.append([choice] + bytes[body].dropFirst(choice == 3 ? 2 : 0)) }
      place = body.upperBound
    }
    return bodies
  }

  /// The bodies of messages of uploads, behind the number of the message.
  private static func uploads(_ vectors: URL) throws -> [[UInt8]] {
    let choices: [Substring: UInt8] = [
      "StoredUpload": 9, "StatusRequest": 10, "StatusResponse": 11, "StoredFinish": 12,
    ]
    let file = vectors.appending(path: "Uploads/messages.txt")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      return choices[words[0]].map { [$0] + bytes(of: words[2]) }
    }
  }

  /// The commands that give a connection its bytes, behind a greeting that agrees to everything. A
  /// server then admits the client, whose requests can run once; a client does nothing.
  private static func connection(_ bytes: [UInt8]) -> [UInt8] {
    var commands: [UInt8] = [0, 5, 0, 23, 0, 0, 14, 8]
    for start in stride(from: 0, to: bytes.count, by: 255) {
      let part = bytes[start..<min(start + 255, bytes.count)]
      commands += [0, UInt8(part.count)] + part + [15]
    }
    return commands
  }

  // MARK: - Layouts of a seed

  private static func random(_ seed: Int, _ count: Int) -> [UInt8] {
    var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
  }

  private static func commands(_ seed: Int) -> [UInt8] { random(seed, 300) }

  /// A layout that the seed describes, and frames that fit.
  private static func conversation(_ seed: Int, isDelimited: Bool) -> [UInt8]? {
    // The descriptions are as long as they are; what is left over cuts the stream.
    let choices = random(seed, 64)
    for length in 8..<choices.count {
      var input = FuzzInput(Array(choices[..<length]))
      let role = input.pick(Role.client, .server)
      guard !input.isEmpty, let dialect = input.dialect(isDelimited: isDelimited),
        input.left == 0
      else { continue }
      let field = dialect.layout.shape(from: role.peer).header.first { $0.meaning == .token }
      let token = [UInt8](repeating: 7, count: field?.width ?? 0)
      guard let writer = try? DialectCodec(dialect, role: role.peer, token: token) else {
        return nil
      }
      return Array(choices[..<length]) + [3, 30, 1, 9] + frames(of: writer)
    }
    return nil
  }

  private static func frames(of writer: DialectCodec) -> [UInt8] {
    let serial = writer.facts.serials?.lowerBound ?? 20
    let heads = [
      FrameHead(.request, tag: 7, serial: serial, length: 3),
      FrameHead(.response, tag: 200, serial: 20, about: 7, length: 3),
      FrameHead(.push, tag: writer.role == .client ? 0x70 : 0x60, length: 3),
      FrameHead(.ping, serial: writer.role == .client ? 1 : 6, length: 0),
      FrameHead(.request, tag: 7, serial: serial + 1, length: 0),
    ]
    return heads.flatMap { head in
      writer.written(head, [UInt8](repeating: 1, count: head.length)) ?? []
    }
  }
}
