// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension Peer {
  /// Sends a one-way message; it waits and throws as the form that takes a message type.
  public func push(
    _ message: some PushMessage, options: PushOptions = PushOptions()
  ) async throws(LongLinkError) {
    try await push(type(of: message).pushType, message, options: options)
  }

  /// Sends a one-way message at once; on the connection's loop alone. It throws as the form that
  /// takes a message type.
  public func pushNow(
    _ message: some PushMessage, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try pushNow(type(of: message).pushType, message, priority: priority)
  }
}
