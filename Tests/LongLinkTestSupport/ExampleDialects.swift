// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
package import LongLinkDialects

extension FrameDialect {
  /// Makes a real-world dialect: a token, Adler-32 over the body, and the type again.
  ///
  /// The server pings and the client echoes; a cancel identifies requests by their type. The prefix
  /// is 1 to 255 bytes wide; any other width throws.
  package static func guarded(tokenWidth: Int = 36) throws(FrameLayoutError) -> FrameDialect {
    let trailer: [FrameLayout.Field] = [
      .checksum(8, .adler32, over: .body), .repeatedType(4),
    ]
    let layout = try FrameLayout(
      request: FrameLayout.Shape(
        header: [.token(tokenWidth), .type(4), .serial(4), .length(4)], trailer: trailer),
      response: FrameLayout.Shape(
        header: [.type(4), .serial(4), .code(4), .length(4)], trailer: trailer))
    return try FrameDialect(
      name: "guarded",
      layout: layout,
      serials: Serials(client: 51...UInt32.max),
      heartbeat: HeartbeatFrames(
        server: Ping(type: 0, serials: 0...UInt32.max), interval: .seconds(15),
        timeout: .seconds(10)),
      pushes: Pushes(fromServer: [1...1]),
      cancel: Cancel(type: 2, target: .type),
      codes: fieldCodes,
      unknownSerial: .heartbeat,
      maximumBody: 20_000)
  }

  /// A real-world dialect: four numbers before a JSON body, without a checksum.
  ///
  /// The client pings with serial 1, the server with any other, and each echoes the other's.
  package static let bare = try! FrameDialect(
    name: "bare",
    layout: FrameLayout(
      request: FrameLayout.Shape(header: [.type(4), .serial(4), .length(4)]),
      response: FrameLayout.Shape(header: [.type(4), .serial(4), .code(4), .length(4)])),
    serials: Serials(client: 0x401...0xFFFF_FFFE),
    heartbeat: HeartbeatFrames(
      client: Ping(type: 1, serials: 1...1),
      server: Ping(type: 1, serials: 2...UInt32.max),
      interval: .seconds(60)),
    pushes: Pushes(fromServer: [0...0, 2...0x400]),
    codes: fieldCodes)

  private static let fieldCodes = Codes(
    success: [200],
    failure: 404,
    errors: [
      DialectErrorCode(100, "notConnected", "not connected to the server"),
      DialectErrorCode(101, "timedOut", "the time was over", native: .deadlinePassed),
      DialectErrorCode(102, "offline", "there is no network"),
      DialectErrorCode(103, "cancelled", "cancelled", native: .cancelled),
      DialectErrorCode(104, "failed", "something went wrong"),
      DialectErrorCode(105, "noData", "there is nothing"),
      DialectErrorCode(106, "noMoreData", "there is nothing more"),
      DialectErrorCode(300, "connectionLost", "the connection was lost"),
      DialectErrorCode(301, "badLength", "a length was wrong"),
      DialectErrorCode(302, "badChecksum", "the checksum of a response was wrong"),
      DialectErrorCode(303, "badFormat", "a packet was not understood"),
      DialectErrorCode(401, "unknownType", "nobody handles this type", native: .unknownType),
      DialectErrorCode(402, "badBody", "the body was not understood", native: .malformed),
      DialectErrorCode(403, "database", "the database failed", native: .failed),
      DialectErrorCode(404, "unknown", "the request failed", native: .failed),
      DialectErrorCode(405, "forbidden", "this is not allowed", native: .forbidden),
      DialectErrorCode(455, "badRequestChecksum", "the checksum of a request was wrong"),
      DialectErrorCode(456, "emptyBody", "the body was empty"),
    ])

  /// Little-endian: a CRC-32 in front of everything, a length of 2 bytes of the whole frame, and a
  /// code of 1 byte.
  package static func small(
    serials: ClosedRange<UInt32> = 1...0x7FFF_FFFF, unknownSerial: UnknownSerial = .violation,
    maximumBody: Int = 4096,
    errors: [DialectErrorCode] = [
      DialectErrorCode(2, "busy", "come again later", native: .overloaded),
      DialectErrorCode(3, "gone", "it is not there any more"),
    ]
  ) throws -> FrameDialect {
    let front: [FrameLayout.Field] = [
      .checksum(4, .crc32, over: .headerAndBody), .length(2, of: .frame), .type(2), .serial(4),
    ]
    let layout = try FrameLayout(
      byteOrder: .little, request: FrameLayout.Shape(header: front),
      response: FrameLayout.Shape(header: front + [.code(1)]))
    return try FrameDialect(
      name: "small", layout: layout,
      serials: Serials(client: serials, server: 0x8000_0000...0xFFFF_FFFF),
      responseType: .offset(0x4000),
      heartbeat: HeartbeatFrames(client: Ping(type: 0xFF01, serials: 1...0xFFFF, answer: 0xFF02)),
      pushes: Pushes(fromServer: [0xF000...0xF0FF], fromClient: [0xF100...0xF1FF]),
      cancel: Cancel(type: 0xFF03, target: .serial),
      codes: Codes(success: [0], failure: 1, errors: errors),
      unknownSerial: unknownSerial, maximumBody: maximumBody)
  }
}
