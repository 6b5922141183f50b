// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The decision not to accept a client; an `authenticate` function throws it.
public struct AuthenticationRefusal: Error, Hashable, Sendable {
  /// The code that the client gets: 401 or 403.
  public let code: ResponseCode
  /// The reason, for people to read. The client gets it, cut to 1,024 bytes.
  public let reason: String

  private init(_ code: ResponseCode, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// The client has not proved who it is, or its credential has expired (401). The client may come
  /// back with a new credential, and stops if the same one is refused twice.
  public static func unauthenticated(_ reason: String) -> AuthenticationRefusal {
    AuthenticationRefusal(.unauthenticated, reason)
  }

  /// The client has proved who it is, and may not connect (403).
  public static func forbidden(_ reason: String) -> AuthenticationRefusal {
    AuthenticationRefusal(.forbidden, reason)
  }
}
