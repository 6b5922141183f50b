// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Synchronization

/// A message body of any type, ready to be encoded.
package typealias AnyBody = any BodyEncodable & Sendable

/// The handler of one message type.
package enum Route: Sendable {
  case inline(@Sendable (InboundRequest) throws -> AnyBody)
  /// Indirect, because a route is copied for each request.
  indirect case task(HandlerPlacement, @Sendable (InboundRequest) async throws -> AnyBody)
  indirect case stream(StreamRoute)
  /// A route for those peers that the condition allows.
  indirect case guarded(AccessCondition, Route)
  /// Another route, some of whose requests are to run once.
  indirect case once(OnceRoute, Route)

  /// Which sides send items in the exchanges of this route.
  var shape: StreamShape {
    switch self {
    case .inline, .task: []
    case .stream(let route): route.shape
    case .guarded(_, let route), .once(_, let route): route.shape
    }
  }
}

/// The handler of a message type whose exchanges carry items.
package struct StreamRoute: Sendable {
  /// The handler of a stream.
  package typealias Handler = @Sendable (InboundRequest, BoundChannel) async throws -> AnyBody

  let shape: StreamShape
  let placement: HandlerPlacement
  /// The longest wait for an item or for credit, in nanoseconds.
  let itemTimeout: Int64?
  package var handler: Handler

  package init(
    _ shape: StreamShape, on placement: HandlerPlacement, itemTimeout: Duration?,
    _ handler: @escaping Handler
  ) {
    self.shape = shape
    self.placement = placement
    self.itemTimeout = itemTimeout?.clampedNanoseconds
    self.handler = handler
  }
}

/// The handlers by message type. It may be used from any thread.
package final class Router: Sendable {
  private struct Table: ~Copyable {
    var routes = SerialTable<Route>()
    var names: [MessageType: String] = [:]
  }

  private let table = Mutex(Table())

  package init() {}

  /// Sets the handler of a type, replacing any earlier one. `name` is that of its method; empty if
  /// it has none.
  package func set(_ type: MessageType, named name: String = "", _ route: Route) {
    table.withLock { table in
      // Plus 1, because type 0 is valid but the table uses 0 for free slots.
      table.routes[type.rawValue + 1] = route
      table.names[type] = name.isEmpty ? nil : name
    }
  }

  /// Whether a type has a handler.
  package func contains(_ type: MessageType) -> Bool {
    table.withLock { $0.routes.contains(type.rawValue + 1) }
  }

  /// The names of the methods that have handlers.
  package var names: [MessageType: String] { table.withLock { $0.names } }

  /// A snapshot of the routes. A connection keeps the snapshot that it was opened with.
  package var snapshot: Routes { snapshot { _, route in route } }

  /// A snapshot of the routes, each of them changed by a function.
  package func snapshot(changing change: (MessageType, Route) -> Route) -> Routes {
    let table = table.withLock { Table(routes: $0.routes.copy(), names: $0.names) }
    let routes = table.routes
    var entries = SerialTable<Routes.Entry>()
    for key in routes.keys.sorted() {
      guard let route = routes[key] else { continue }
      entries[key] = Routes.Entry(change(MessageType(tag: key - 1), route))
    }
    return Routes(entries, table.names)
  }
}

/// The routes of one connection.
package final class Routes: Sendable {
  /// A route, with the facts about it that each request needs.
  fileprivate struct Entry {
    let route: Route
    let shape: StreamShape
    let isWrapped: Bool

    init(_ route: Route) {
      self.route = route
      shape = route.shape
      switch route {
      case .guarded, .once: isWrapped = true
      case .inline, .task, .stream: isWrapped = false
      }
    }
  }

  private let table: SerialTable<Entry>

  /// The names of methods, for logs and errors.
  let names: [MessageType: String]

  fileprivate init(_ table: consuming SerialTable<Entry>, _ names: [MessageType: String]) {
    self.table = table
    self.names = names
  }

  /// The slot of the route of a type; nil if it has none.
  @inline(__always)
  func slot(of type: MessageType) -> Int? { table.slot(of: type.rawValue + 1) }

  /// A type as text for people, with the name of its method if it has one.
  func title(of type: MessageType) -> String {
    names[type].map { "\($0) (message type \(type))" } ?? "message type \(type)"
  }

  subscript(slot: Int) -> Route { table[slot: slot].route }
  /// Which sides send items in the exchanges of the route in this slot.
  func shape(at slot: Int) -> StreamShape { table[slot: slot].shape }
  /// Whether the route in this slot has a rule, for access or for requests that are to run once.
  func isWrapped(at slot: Int) -> Bool { table[slot: slot].isWrapped }
}
