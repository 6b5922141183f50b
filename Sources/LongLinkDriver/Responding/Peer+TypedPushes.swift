// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension Peer {
  /// Sends a one-way message; waits and throws as `push(_:_:timeout:priority:)` does.
  public func push(
    _ message: some PushMessage, timeout: Duration? = nil, priority: UInt32 = 0
  ) async throws(LongLinkError) {
    try await push(type(of: message).pushType, message, timeout: timeout, priority: priority)
  }

  /// Sends a one-way message at once; throws as `pushNow(_:_:priority:)` does. Call it only on the
  /// connection's loop.
  public func pushNow(
    _ message: some PushMessage, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try pushNow(type(of: message).pushType, message, priority: priority)
  }
}
