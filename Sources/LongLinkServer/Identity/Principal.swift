// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
import LongLinkCore

/// The identity of a client, as determined by the server's `authenticate` function.
public struct Principal: Hashable, Sendable, CustomStringConvertible {
  package let record: PrincipalRecord

  /// Makes a principal from its name, which identifies it, and attributes that the application
  /// defines, such as roles.
  public init(_ name: String, attributes: [String: String] = [:]) {
    record = PrincipalRecord(name, attributes: attributes)
  }

  init(_ record: PrincipalRecord) {
    self.record = record
  }

  /// The principal's name. It appears in logs.
  public var name: String { record.name }
  /// The attributes that the application has given the principal. They are not logged.
  public var attributes: [String: String] { record.attributes }
  /// The principal's name.
  public var description: String { name }
}

extension Peer {
  /// The client's principal, as determined by `authenticate`; nil if that has accepted the client
  /// as `.anonymous`, and on a server without `authenticate`.
  public var principal: Principal? { principalRecord.map { Principal($0) } }
}

extension InboundRequest {
  /// The client's principal, as determined by `authenticate`.
  ///
  /// With a route that `requires: .authenticated`, there is always one. Elsewhere this throws a
  /// `Rejection` with code 401 if the client has no principal; a handler that does not catch it
  /// responds with 401. Use `peer.principal`, which is nil then, to ask without an error.
  public var principal: Principal {
    get throws(Rejection) {
      if let principal = peer.principal { return principal }
      throw Rejection(
        .unauthenticated, "the handler has to know who the client is, and it was not authenticated")
    }
  }
}
