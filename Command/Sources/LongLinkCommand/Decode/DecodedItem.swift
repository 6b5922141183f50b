// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

/// A frame or an error at an offset of a stream.
struct DecodedItem: Equatable {
  /// A field of a header or trailer, as text.
  struct Field: Equatable {
    let name: String
    let value: String
  }

  enum Content: Equatable {
    case frame(DecodedFrame)
    /// An error; these bytes are skipped.
    case damage(String, DecodedFrame?)
    /// Bytes that belong to no frame.
    case skipped
    /// The stream ends within a frame.
    case unfinished(wanted: Int)
    /// A recording ends within the header of a frame: more was to come.
    case begun(wanted: Int)
  }

  let offset: Int
  let length: Int
  let content: Content

  var isDamage: Bool {
    switch content {
    case .frame, .begun: false
    case .damage, .skipped, .unfinished: true
    }
  }
}

/// A frame, in terms that fit every protocol.
struct DecodedFrame: Equatable {
  var kind: String
  /// The message type of a request or push.
  var type: UInt32?
  /// The serial field, as on the wire.
  var serial: UInt64
  var code: UInt32?
  var codeName: String?
  var isRefused = false
  /// The bytes that a frame of credit grants.
  var credit: UInt32?
  /// The number of this fragment of its message, from 1; nil for a message in one frame.
  var fragment: Int?
  var hasMore = false
  /// This frame's part of the metadata, without the metadata's length; nil if it has none.
  var metadata: [UInt8]?
  /// The payload: the bytes after the metadata.
  var body: [UInt8] = []
  /// The number of bytes of the body that a recording has left out.
  var leftOut = 0
  var fields: [DecodedItem.Field] = []

  /// A description on one line.
  var summary: String {
    var text = kind
    if let type { text += " type=\(type)" }
    if let code { text += " code=\(code)" + (codeName.map { " (\($0))" } ?? "") }
    if isRefused { text += " refused" }
    text += " serial=\(serial)"
    if let credit { text += " bytes=\(credit)" }
    if let fragment { text += " fragment=\(fragment) \(hasMore ? "more" : "last")" }
    return text
  }
}

/// Finds the frames in the bytes that one side sent.
enum FrameDecoder {
  /// Decodes a stream as sent by `sender`; if that is nil, by the side for which more bytes decode.
  static func items(
    in bytes: [UInt8], of dialect: FrameDialect?, from sender: Role?
  ) throws -> (sender: Role, items: [DecodedItem]) {
    func read(_ role: Role) throws -> [DecodedItem] {
      guard let dialect else { return NativeStream.items(in: bytes, from: role) }
      return try DialectStream.items(in: bytes, of: dialect, from: role)
    }
    if let sender { return (sender, try read(sender)) }
    let (client, server) = (try read(.client), try read(.server))
    func understood(_ items: [DecodedItem]) -> Int {
      items.reduce(0) { $0 + ($1.isDamage ? 0 : $1.length) }
    }
    return understood(server) > understood(client) ? (.server, server) : (.client, client)
  }
}
