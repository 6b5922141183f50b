// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension Responder {
  /// Whether a request passes on to the handler of its wrapped route: the route's rule allows it,
  /// and it is not to run once.
  func passes(_ arrival: Arrival, on link: Link, _ route: Route) -> Bool {
    guard case .guarded(let rule, let guarded) = route else {
      return !runsOnce(arrival, on: link, route)
    }
    return admits(arrival, on: link, rule) && !runsOnce(arrival, on: link, guarded)
  }

  /// Whether the rule of a route allows a request; if not, refuses it. The peer does not learn why.
  private func admits(_ arrival: Arrival, on link: Link, _ rule: AccessCondition) -> Bool {
    if rule.allows(peer) { return true }
    link.count { $0.refusedAccess += 1 }
    refuse(
      arrival, on: link, .forbidden, "access to message type \(arrival.tag) is denied",
      because: "the access rule of its route does not allow the peer")
    return false
  }
}
