// SPDX-License-Identifier: Apache-2.0

/// A message that is always pushed with the same message type.
public protocol PushMessage: BodyEncodable, BodyDecodable, Sendable, SendableMetatype {
  /// The message type of all pushes of this Swift type.
  static var pushType: MessageType { get }
}
