// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

/// The functions, rules, interceptors and services that the application has set. `start` gives each
/// loop a snapshot, so that the loops share no lock.
struct ServerHooks: Sendable {
  var accept: (@Sendable (SocketAddress?) -> Bool)?
  var connect: (@Sendable (Peer) -> Void)?
  var disconnect: (@Sendable (Peer) -> Void)?
  var connectionOpened: (@Sendable (Peer) -> Void)?
  var connectionEnded: (@Sendable (Peer) -> Void)?
  var pushes: [MessageType: @Sendable (Push, Peer) -> Void] = [:]
  var services: [any ServerService] = []
  /// Observers besides those of the configuration.
  var observers: [any Observer] = []
  /// The access rules of the routes, and of the pushes, that have a rule of their own.
  var rules: [MessageType: AccessRule] = [:]
  var pushRules: [MessageType: AccessRule] = [:]
  /// The access rule of all routes and pushes without a rule of their own.
  var rule = AccessRule.everyone
  /// What routes say of the records of requests that run once.
  var onceRules: [MessageType: OnceRule] = [:]
  /// The places where settings were made that can be made only once.
  var origins: [Setting: Setting.Origin] = [:]
  /// The interceptors in order, the first one outermost. Without types, an interceptor is around
  /// all routes.
  var interceptors: [(types: Set<MessageType>?, run: Interceptor)] = []
}

extension ServerHooks {
  /// Which types only clients with a principal may use, as text for the log; nil for none. `names`
  /// are the names of methods.
  func needsPrincipal(_ names: [MessageType: String]) -> String? {
    if rule.condition.needsPrincipal { return "all without a rule of their own" }
    let types = Set(rules.filter { $0.value.condition.needsPrincipal }.keys)
      .union(pushRules.filter { $0.value.condition.needsPrincipal }.keys)
      .sorted { $0.rawValue < $1.rawValue }
    guard !types.isEmpty else { return nil }
    let text = types.prefix(8).map { names[$0] ?? "\($0)" }.joined(separator: ", ")
    return types.count > 8 ? "\(text) and \(types.count - 8) more" : text
  }

  /// Returns the hooks as loops use them: functions for pushes check the access rules.
  func settled(counting shared: ServerShared) -> ServerHooks {
    var settled = self
    for (type, handler) in pushes {
      let condition = (pushRules[type] ?? rule).condition
      if condition.isOpen { continue }
      settled.pushes[type] = { push, peer in
        guard condition.allows(peer) else { return shared.deniedPush() }
        handler(push, peer)
      }
    }
    return settled
  }

  /// Returns a route as connections use it: with its interceptors, and its access rule outermost.
  func settled(_ route: Route, of type: MessageType, runsOnce: Bool) -> Route {
    var whole = route.intercepted(
      by: interceptors.filter { $0.types?.contains(type) ?? true }.map(\.run))
    if runsOnce { whole = whole.once(onceRules[type] ?? OnceRule()) }
    let condition = (rules[type] ?? rule).condition
    return condition.isOpen ? whole : .guarded(condition, whole)
  }
}

extension ServerHooks {
  /// A setting that an application can make only once.
  enum Setting: Hashable, CustomStringConvertible {
    case route(MessageType)
    case onPush(MessageType)
    case onAccept
    case onConnect
    case onDisconnect
    case onConnectionOpened
    case onConnectionEnded
    case require
    case operationsPort

    /// The setting as the object of a sentence.
    var description: String {
      switch self {
      case .route(let type): "the route of message type \(type)"
      case .onPush(let type): "onPush of message type \(type)"
      case .onAccept: "onAccept"
      case .onConnect: "onConnect"
      case .onDisconnect: "onDisconnect"
      case .onConnectionOpened: "onConnectionOpened"
      case .onConnectionEnded: "onConnectionEnded"
      case .require: "the access rule of all routes"
      case .operationsPort: "the operations port"
      }
    }

    /// The place in the application where a setting was made.
    struct Origin: CustomStringConvertible {
      /// The name of the route's method; empty for other settings.
      let name: String
      let place: SettingPlace

      var description: String {
        "\(name.isEmpty ? "" : "for \(name) ")at \(place.fileID):\(place.line)"
      }
    }
  }
}
