// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver
public import LongLinkUploads

/// A response whose body is in memory.
public struct HTTPReply: Sendable {
  /// The status, 200 to 299.
  public let status: Int
  /// The head's fields.
  public let fields: HTTPFields
  /// The URL that the response is from, after redirects.
  public let url: String
  /// The body, decompressed.
  public let body: [UInt8]
  /// Whether the reply comes from the cache.
  public let isFromCache: Bool
}

/// A response whose body is read while it arrives.
///
/// If it is dropped before its end, the rest is not received, and the connection is closed.
public struct HTTPResponse: Sendable {
  /// The status, 200 to 299.
  public let status: Int
  /// The head's fields.
  public let fields: HTTPFields
  /// The URL that the response is from, after redirects.
  public let url: String
  /// The number of the body's bytes, if the head states it and the body is not compressed.
  public let length: UInt64?
  /// The body, decompressed, in the chunks in which it arrives. It can be read once.
  ///
  /// No more is received than the reader takes, and what fits into the buffers of the connection.
  /// `DocumentReader` of LongLinkReaders reads documents from it. A reader throws `connectionLost`
  /// if the connection ends before the body does, `deadlineExceeded`, `protocolViolation`,
  /// `corrupted`, `cancelled` when its task is cancelled, and `streamEnded` if it is the second.
  public let chunks: BytePieces<LongLinkError>
}
#endif
