// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore

extension RequestTable where Payload == Void {
  /// Names and registers a request in one step; `none` where there is no serial for it.
  mutating func create(
    deadline: LinkInstant?, isOrdered: Bool = false, notifiesCancel: Bool, at now: LinkInstant
  ) -> RequestID {
    guard let id = nextID() else { return .none }
    register(
      id, (), deadline: deadline, isOrdered: isOrdered, notifiesCancel: notifiesCancel, now: now)
    return id
  }
}

extension RequestTable {
  /// Ends the request that a response answers; nil if it has ended before.
  mutating func answered(_ serial: UInt32, on link: UInt32, isRefused: Bool = false) -> Entry? {
    slot(of: serial, on: link).map { answered(serial, at: $0, isRefused: isRefused) }
  }
}
