// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver
public import LongLinkUploads

/// A response whose body is in memory.
public struct HTTPReply: Sendable {
  /// The status, 200 to 299.
  public let status: Int
  /// The header fields of the response.
  public let fields: HTTPFields
  /// The URL that the response is from, after redirects.
  public let url: String
  /// The body, decompressed.
  public let body: [UInt8]
  /// Whether the body comes from the cache, also if the server has confirmed it with 304.
  public let isFromCache: Bool
}

/// A response whose body is read while it arrives.
///
/// If you release it before its end, the rest is not received, and its HTTP/1 connection or HTTP/2
/// stream is closed.
public struct HTTPResponse: Sendable {
  /// The status, 200 to 299.
  public let status: Int
  /// The header fields of the response.
  public let fields: HTTPFields
  /// The URL that the response is from, after redirects.
  public let url: String
  /// The length of the body in bytes; nil if the head does not state it or the body is compressed.
  public let length: UInt64?
  /// The body, decompressed, in the chunks in which it arrives. It can be read once.
  ///
  /// While you do not read, only what fits into the buffers of the connection is received.
  /// `DocumentReader` of LongLinkReaders reads documents from it. Reading throws `connectionLost`
  /// if the connection ends before the body does, `deadlineExceeded`, `protocolViolation`,
  /// `corrupted`, `closed` if the service was closed, `cancelled` if the task was cancelled, and
  /// `streamEnded` if the body was read before.
  public let chunks: BytePieces<LongLinkError>
}
#endif
