// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

/// What stands at some place of a stream.
struct DecodedItem: Equatable {
  /// A field of a header or trailer, in words.
  struct Field: Equatable {
    let name: String
    let value: String
  }

  enum Content: Equatable {
    case frame(DecodedFrame)
    /// Something is wrong here, and these bytes are passed over.
    case damage(String, DecodedFrame?)
    /// Bytes that belong to no frame.
    case skipped
    /// The stream ends within a frame.
    case unfinished(wanted: Int)
  }

  let offset: Int
  let length: Int
  let content: Content

  var isDamage: Bool {
    if case .frame = content { false } else { true }
  }
}

/// A frame, in words that do for every protocol.
struct DecodedFrame: Equatable {
  var kind: String
  /// The message type of a request or push.
  var type: UInt32?
  /// The serial field, as it stands on the wire.
  var serial: UInt64
  var code: UInt32?
  var codeName: String?
  var isRefused = false
  /// Which fragment of its message it is, from 1; nil for a message in one frame.
  var fragment: Int?
  var hasMore = false
  /// The part of its message's metadata that it has, without its length; nil where there is none.
  var metadata: [UInt8]?
  /// The payload: what stands behind the metadata.
  var body: [UInt8] = []
  var fields: [DecodedItem.Field] = []

  /// What it is, on one line.
  var summary: String {
    var text = kind
    if let type { text += " type=\(type)" }
    if let code { text += " code=\(code)" + (codeName.map { " (\($0))" } ?? "") }
    if isRefused { text += " refused" }
    text += " serial=\(serial)"
    if let fragment { text += " fragment=\(fragment) \(hasMore ? "more" : "last")" }
    return text
  }
}

/// Finds the frames in the bytes that one side has sent.
enum FrameDecoder {
  /// Reads a stream as the frames of a side; without one, of that as whose it makes more sense.
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
