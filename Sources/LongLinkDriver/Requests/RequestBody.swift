// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The body of a request, kept while the request may have to be sent.
///
/// Bytes have their own case because nearly all bodies are bytes here: measuring and encoding them
/// then needs no dynamic dispatch.
@usableFromInline package enum RequestBody: Sendable {
  case bytes([UInt8])
  /// A value that encodes itself into the frame.
  indirect case value(any BodyEncodable & Sendable)

  /// Makes a body. A value that can only be measured by encoding it is encoded here, once.
  @inlinable @inline(__always)
  package init<Body: BodyEncodable & Sendable>(_ body: Body) {
    // A value that cannot be encoded fails later, when the request is submitted.
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

  /// The bytes, if they are in memory already.
  var bytes: [UInt8]? {
    if case .bytes(let bytes) = self { bytes } else { nil }
  }

  /// Throws if a link's dialect cannot carry the body.
  func validate(for link: Link) throws(BodyError) {
    switch self {
    case .bytes(let bytes): try link.connection.framing.validate(bytes)
    case .value(let body): try link.connection.framing.validate(body)
    }
  }
}
