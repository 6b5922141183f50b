// SPDX-License-Identifier: Apache-2.0

/// The decision to accept a client, and its principal; an `authenticate` function returns it.
public struct Authentication: Sendable {
  /// Who the client is; nil if that is unknown.
  public var principal: Principal?
  /// How long the client is accepted; nil for no end. Less than a millisecond counts as one. With
  /// zero or less, the client is refused with 401, as if its credential had expired.
  public var validity: Duration?

  /// Accepts a client as `principal`, for `validity`, or without an end if that is nil.
  ///
  /// The client is told this time, and renews its credential before it is over. A connection whose
  /// credential was not renewed by then gets a goaway with 401.
  public init(_ principal: Principal, validity: Duration? = nil) {
    self.principal = principal
    self.validity = validity
  }

  private init() {}

  /// Accepts a client that has not proved who it is; rules of routes can still keep it out.
  public static let anonymous = Authentication()
}
