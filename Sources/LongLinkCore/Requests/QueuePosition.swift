// SPDX-License-Identifier: Apache-2.0

/// The properties of a waiting request that determine its turn.
package struct WaitTerms: Equatable, Sendable {
  /// The request's priority; a larger one is more urgent.
  package var priority: UInt32
  /// The request's deadline; the distant future if it has none.
  package var deadline: LinkInstant
  /// The size of the request's body in bytes, for the limit on all waiting requests.
  package var bytes: Int

  /// Whether the request's body is sent in fragments, if the peer supports them.
  package var isLarge: Bool { bytes > Wire.fragmentLimit }

  package init(priority: UInt32, deadline: LinkInstant, bytes: Int) {
    self.priority = priority
    self.deadline = deadline
    self.bytes = bytes
  }
}

/// The position of a waiting request in the queue: by priority, then by deadline, then by the order
/// of submission. The least is first.
struct QueuePosition: Comparable, Sendable {
  let priority: UInt32
  let deadline: LinkInstant
  let id: RequestID

  init(_ id: RequestID, _ terms: WaitTerms) {
    priority = terms.priority
    deadline = terms.deadline
    self.id = id
  }

  static func < (lhs: QueuePosition, rhs: QueuePosition) -> Bool {
    if lhs.priority != rhs.priority { return lhs.priority > rhs.priority }
    if lhs.deadline != rhs.deadline { return lhs.deadline < rhs.deadline }
    return lhs.id < rhs.id
  }
}
