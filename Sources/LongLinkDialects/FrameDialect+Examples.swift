// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension FrameDialect {
  /// Makes a real-world dialect: a session prefix, Adler-32 over the body, and the type again.
  ///
  /// The server pings and the client echoes; a cancel identifies requests by their type. The prefix
  /// is 1 to 255 bytes wide; any other width throws.
  public static func guarded(sessionWidth: Int = 36) throws(FrameLayoutError) -> FrameDialect {
    let trailer: [FrameLayout.Field] = [
      .checksum(8, .adler32, over: .body), .repeatedType(4),
    ]
    let layout = try FrameLayout(
      request: FrameLayout.Shape(
        header: [.session(sessionWidth), .type(4), .serial(4), .length(4)], trailer: trailer),
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
  public static let bare = FrameDialect(
    unchecked: "bare",
    FrameLayout(
      unchecked: .big,
      request: FrameLayout.Shape(header: [.type(4), .serial(4), .length(4)]),
      response: FrameLayout.Shape(header: [.type(4), .serial(4), .code(4), .length(4)])),
    Serials(client: 0x401...0xFFFF_FFFE),
    .echo,
    HeartbeatFrames(
      client: Ping(type: 1, serials: 1...1),
      server: Ping(type: 1, serials: 2...UInt32.max),
      interval: .seconds(60)),
    Pushes(fromServer: [0...0, 2...0x400]),
    nil,
    fieldCodes,
    .drop,
    16_777_216)

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
}
