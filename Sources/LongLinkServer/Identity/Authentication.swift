// SPDX-License-Identifier: Apache-2.0

/// The decision to accept a client, and its principal; an `authenticate` function returns it.
public struct Authentication: Sendable {
  /// Who the client is; nil if that is unknown.
  public var principal: Principal?
  /// How long the client is accepted, in whole milliseconds, at least 1 ms; nil for no end. With
  /// zero or less, it is refused with 401, like a client whose credential has expired.
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
