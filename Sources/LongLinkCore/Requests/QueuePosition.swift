// SPDX-License-Identifier: Apache-2.0

/// What a request that waits is judged by.
package struct WaitTerms: Equatable, Sendable {
  /// Larger is more urgent.
  package var priority: UInt32
  /// The distant future where there is none.
  package var deadline: LinkInstant
  /// What its body takes, for the bound on all that wait.
  package var bytes: Int

  /// Whether its body goes in fragments, where the peer takes them.
  package var isLarge: Bool { bytes > Wire.fragmentLimit }

  package init(priority: UInt32, deadline: LinkInstant, bytes: Int) {
    self.priority = priority
    self.deadline = deadline
    self.bytes = bytes
  }
}

/// The place of a request among those that wait: by priority, then by deadline, then by the order
/// of submission. The least goes first.
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
