// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The body of a request, for as long as it may have to be sent.
///
/// Bytes are told from other values since nearly all bodies are bytes by the time they get here:
/// to ask one how long it is and to write it is then no call through a table.
@usableFromInline package enum RequestBody: Sendable {
  case bytes([UInt8])
  /// A value that writes itself into the frame.
  indirect case value(any BodyEncodable & Sendable)

  /// Takes bytes as they are; encodes what it would cost as much to measure.
  @inlinable @inline(__always)
  package init<Body: BodyEncodable & Sendable>(_ body: Body) {
    // What has no encoding fails where any request does.
    if Body.isMeasuredByEncoding, let bytes = try? body.encodedBytes() {
      self = .bytes(bytes)
    } else {
      self = .value(body)
    }
  }

  @inline(__always)
  var encodedByteCount: Int {
    get throws(BodyError) {
      switch self {
      case .bytes(let bytes): bytes.count
      case .value(let body): try body.encodedByteCount
      }
    }
  }

  @inline(__always)
  func encode(into output: inout OutputRawSpan) throws(BodyError) {
    switch self {
    case .bytes(let bytes): bytes.encode(into: &output)
    case .value(let body): try body.encode(into: &output)
    }
  }

  /// Throws where the dialect of a connection refuses the body.
  func judge(for link: Link) throws(BodyError) {
    switch self {
    case .bytes(let bytes): try link.judge(bytes)
    case .value(let body): try link.judge(body)
    }
  }
}
