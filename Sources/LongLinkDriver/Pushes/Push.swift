// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A one-way message from the peer.
public struct Push: Hashable, Sendable {
  /// The message type of the body.
  public let type: MessageType
  /// The body.
  public let body: [UInt8]

  /// Makes a push, for tests.
  public init(type: MessageType, body: [UInt8]) {
    self.type = type
    self.body = body
  }
}

/// The options of one push.
public struct PushOptions: Hashable, Sendable {
  /// How long the push may wait for room. Default nil: the default timeout of requests, which is
  /// 15 seconds unless configured otherwise.
  public var timeout: Duration?
  /// The priority of the push: larger is more urgent. Default 0, which is ordinary.
  ///
  /// A more urgent push overtakes waiting pushes, but not one that is partly sent: all pushes of a
  /// connection share a serial, so a push in fragments is finished first.
  public var priority: UInt32

  /// Makes options.
  public init(timeout: Duration? = nil, priority: UInt32 = 0) {
    self.timeout = timeout
    self.priority = priority
  }
}
