// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore

extension RequestTable {
  /// Names and registers a request in one step; `none` where there is no serial for it.
  mutating func create(
    deadline: LinkInstant?, isOrdered: Bool = false, notifiesCancel: Bool, at now: LinkInstant
  ) -> RequestID {
    guard let id = nextID() else { return .none }
    register(
      id, deadline: deadline, isOrdered: isOrdered, notifiesCancel: notifiesCancel, at: now)
    return id
  }
}
