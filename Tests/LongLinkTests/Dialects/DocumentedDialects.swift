// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkServer
import LongLinkTesting
import Testing
import LongLinkDialects

/// The code of the page on other headers, so that it is compiled.
private enum DocumentedDialects {
  static func describe() throws -> FrameDialect {
    let fields: [FrameLayout.Field] = [
      .checksum(4, .crc32, over: .headerAndBody), .length(2, of: .frame), .type(2), .serial(4),
    ]
    let layout = try FrameLayout(
      byteOrder: .little,
      request: FrameLayout.Shape(header: fields),
      response: FrameLayout.Shape(header: fields + [.code(1)]))
    let parcels = try FrameDialect(
      name: "parcels", layout: layout,
      serials: FrameDialect.Serials(client: 1...0x7FFF_FFFF),
      heartbeat: FrameDialect.HeartbeatFrames(
        client: FrameDialect.Ping(type: 0xFF01, serials: 1...0xFFFF, answer: 0xFF02)),
      pushes: FrameDialect.Pushes(fromServer: [0xF000...0xF0FF]),
      cancel: .bySerial(type: 0xFF03),
      codes: FrameDialect.Codes(
        success: [0], failure: 1,
        errors: [
          DialectErrorCode(2, "busy", "come again later", native: .overloaded),
          DialectErrorCode(3, "lost", "nobody knows where it is"),
        ]),
      maximumBody: 4_096)
    return parcels
  }

  static func call(_ host: String, _ port: UInt16, _ parcels: FrameDialect) async throws {
    let client = try LongLinkClient(to: .host(host, port: port), dialect: .custom(parcels))
    do {
      let answer = try await client.request(0x500, Array("where is 17?".utf8))
      print(answer)
    } catch {
      // 3, lost, nobody knows where it is
      if let number = error.dialectCode, let code = parcels.codes?.error(number) {
        print(code.code, code.name, code.text)
      }
    }
  }

  static func serve(
    _ parcels: FrameDialect, _ find: @escaping @Sendable ([UInt8]) -> [UInt8]?
  ) throws {
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.dialect = .custom(parcels)
    let server = try LongLinkServer(configuration)
    server.route(0x500) { request in
      guard let parcel = find(request.body) else { throw Rejection(dialectCode: 3) }
      return parcel
    }
  }

  static func simulate(_ parcels: FrameDialect) async throws {
    let simulated = try await SimulatedServer.start(dialect: .custom(parcels))
    simulated.on(0x500, [.reply(dialectCode: 2), .reply(text: "in the van")])
  }

  static func prefixes(
    _ configuration: inout ClientConfiguration, _ json: Data, _ token: String,
    _ newToken: @escaping @Sendable () -> [UInt8]
  ) throws {
    let guarded = try JSONDecoder().decode(FrameDialect.self, from: json)
    configuration.dialect = .custom(guarded, token: Array(token.utf8))
    configuration.dialect = .custom(guarded) { newToken() }
  }
}

/// What the page on other headers shows is what is compiled.
@Suite struct DocumentedDialectTests {
  @Test func `the code of the page on other headers is compiled`() throws {
    let here = URL(filePath: #filePath)
    let page = here.deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Sources/LongLinkDialects/LongLinkDialects.docc/LongLinkDialects.md")
    func lines(_ file: URL) throws -> [String] {
      try String(contentsOf: file, encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
    let code = try lines(here)
    var rest = try lines(page)[...]
    var pieces = 0
    while let start = rest.firstIndex(of: "```swift") {
      let end = try #require(rest[start...].firstIndex(of: "```"))
      let piece = Array(rest[(start + 1)..<end])
      let isCompiled = code.indices.contains { code[$0...].starts(with: piece) }
      #expect(isCompiled, "line \(start + 1)")
      pieces += 1
      rest = rest[(end + 1)...]
    }
    #expect(pieces == 5)
  }

  @Test func `the described dialect works`() async throws {
    try await Stage.run(.loopback) { stage in
      let parcels = try DocumentedDialects.describe()
      let server = try await stage.serve {
        $0.route(0x500) { _ -> [UInt8] in throw Rejection(dialectCode: 3) }
      } configure: {
        $0.dialect = .custom(parcels)
      }
      let client = try stage.client(of: server) { $0.dialect = .custom(parcels) }
      let error = try await failure { try await client.request(0x500, [1]) }
      #expect(error.response == 3 && error.dialectCode == 3)
      #expect(error.detail == "3 lost: nobody knows where it is")
    }
  }
}
