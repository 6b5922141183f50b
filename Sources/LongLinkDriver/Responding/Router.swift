// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Synchronization

/// A message body of any type, ready to be encoded.
package typealias AnyBody = any BodyEncodable & Sendable

/// What handles one message type.
package enum Route: Sendable {
  case inline(@Sendable (InboundRequest) throws -> AnyBody)
  /// Kept apart, since a route is copied for each request.
  indirect case task(HandlerPlacement, @Sendable (InboundRequest) async throws -> AnyBody)
}

/// Which handler takes which message type.
package final class Router: Sendable {
  private let routes = Mutex(SerialTable<Route>())

  package init() {}

  /// Sets the handler of a type, in place of the one before.
  package func set(_ type: MessageType, _ route: Route) {
    // Type 0 is a type like any other, but the table keeps 0 for free slots.
    routes.withLock { $0[type.rawValue + 1] = route }
  }

  /// The routes as they are now; connections opened later see later changes.
  package var snapshot: Routes { Routes(table: routes.withLock { $0.copy() }) }
}

/// The routes that one connection uses.
package final class Routes: Sendable {
  private let table: SerialTable<Route>

  fileprivate init(table: consuming SerialTable<Route>) {
    self.table = table
  }

  package subscript(type: MessageType) -> Route? { table[type.rawValue + 1] }
}
