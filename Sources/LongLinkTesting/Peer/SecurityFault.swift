// SPDX-License-Identifier: Apache-2.0

/// A fault that a scripted peer causes below its security, such as within the records of TLS.
///
/// The position is the number of bytes that this side has written below its security since the
/// beginning of the connection. In TLS 1.3, a server's handshake has 600 to 2,000 bytes, most of
/// them for its certificate. A negative position traps.
///
/// ```swift
/// server.securityFaults = [.silence(afterBytes: 100)]
/// ```
public struct SecurityFault: Hashable, Sendable {
  enum Step: Hashable, Sendable {
    case silence
    case end
    case reset
    case insert([UInt8])
  }

  let position: Int
  let step: Step

  private init(_ step: Step, _ position: Int) {
    precondition(position >= 0, "a position must not be negative")
    (self.step, self.position) = (step, position)
  }

  /// Sends nothing more after `count` bytes, not even an end. Later output is dropped, and reading
  /// continues.
  public static func silence(afterBytes count: Int) -> SecurityFault {
    SecurityFault(.silence, count)
  }

  /// Ends the stream below the security after `count` bytes, without the end of the security (TLS's
  /// close_notify), as anyone on the path can. Later output is dropped, and reading continues.
  public static func end(afterBytes count: Int) -> SecurityFault {
    SecurityFault(.end, count)
  }

  /// Resets the connection when this side has written `count` bytes.
  public static func reset(afterBytes count: Int) -> SecurityFault {
    SecurityFault(.reset, count)
  }

  /// Sends bytes of your own below the security, once this side has written `count` bytes, such as
  /// a record that is too long. The output of the security then continues.
  public static func insert(_ bytes: [UInt8], afterBytes count: Int) -> SecurityFault {
    SecurityFault(.insert(bytes), count)
  }
}
