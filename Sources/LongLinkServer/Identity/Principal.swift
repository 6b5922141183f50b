// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
import LongLinkCore

/// Who a client is, as the server's `authenticate` function has found.
public struct Principal: Hashable, Sendable, CustomStringConvertible {
  package let record: PrincipalRecord

  /// Makes a principal with a name, by which limits count and connections are ended, and attributes
  /// that the application defines, such as roles.
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
  /// The name.
  public var description: String { name }
}

extension Peer {
  /// Who the client is, as `authenticate` has found; nil on a server that authenticates nobody.
  public var principal: Principal? { principalRecord.map { Principal($0) } }
}

extension InboundRequest {
  /// Who the client is, as `authenticate` has found.
  ///
  /// With a route that `requires: .authenticated`, there is always one. Elsewhere this throws a
  /// `Rejection` with code 401 if nobody was authenticated; thrown on, that is the response.
  /// `peer.principal` is nil then.
  public var principal: Principal {
    get throws(Rejection) {
      if let principal = peer.principal { return principal }
      throw Rejection(
        .unauthenticated, "the handler has to know who the client is, and nobody was authenticated")
    }
  }
}
