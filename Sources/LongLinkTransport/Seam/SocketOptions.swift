// SPDX-License-Identifier: Apache-2.0

/// The options that are set on every socket of a client or server.
package struct SocketOptions: Equatable, Sendable {
  /// How long written bytes can stay unacknowledged before the kernel drops the connection.
  ///
  /// In nanoseconds (`TCP_USER_TIMEOUT`, RFC 5482); nil for the system's default.
  package var userTimeout: Int64?
  /// The requested size of the kernel's send buffer, in bytes; nil for its own sizing.
  package var sendBuffer: Int?
  /// The requested length of the queue of connections to be accepted.
  package var backlog: Int32

  package init(
    userTimeout: Int64? = nil,
    sendBuffer: Int? = nil,
    backlog: Int32 = 1024
  ) {
    self.userTimeout = userTimeout
    self.sendBuffer = sendBuffer
    self.backlog = backlog
  }
}
