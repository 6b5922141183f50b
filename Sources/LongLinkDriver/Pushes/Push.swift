// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A one-way message from the peer.
public struct Push: Hashable, Sendable {
  /// What the body carries.
  public let type: MessageType
  /// The body.
  public let body: [UInt8]

  /// Makes a push, for tests.
  public init(type: MessageType, body: [UInt8]) {
    self.type = type
    self.body = body
  }
}

/// What a caller may choose for one push that is sent. Everything has a default.
public struct PushOptions: Hashable, Sendable {
  /// How long the push may wait for room. Nil, the default, takes the time that requests get where
  /// they say nothing (15 seconds unless configured otherwise).
  public var timeout: Duration?
  /// Larger is more urgent; 0, the default, is ordinary.
  ///
  /// A more urgent push passes those that wait, not one that has begun to leave: all pushes of a
  /// connection share a serial, so that one which goes in fragments is finished first.
  public var priority: UInt32

  /// Makes options.
  public init(timeout: Duration? = nil, priority: UInt32 = 0) {
    self.timeout = timeout
    self.priority = priority
  }
}
