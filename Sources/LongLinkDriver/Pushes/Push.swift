// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A one-way message from the peer.
public struct Push: Hashable, Sendable {
  /// The message type of the body.
  public let type: MessageType
  /// The bytes of the body, without metadata.
  public let body: [UInt8]

  /// Makes a push, for tests.
  public init(type: MessageType, body: [UInt8]) {
    self.type = type
    self.body = body
  }
}
