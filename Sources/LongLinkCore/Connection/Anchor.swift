// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A field that keeps its structure from being copied for reading.
///
/// The compiler copies a large structure to the stack for each call of a method that only reads it,
/// if it considers the structure loadable into registers. A structure with an atomic is not, and is
/// read in place. The connection and the table of requests are read several times for each message.
///
/// It also holds a flag in memory, which code that re-enters the structure during one of its
/// methods can see.
package struct Anchor: ~Copyable, Sendable {
  private let value = Atomic(false)

  package init() {}

  /// The flag, initially false.
  var mark: Bool { value.load(ordering: .relaxed) }

  func setMark(_ mark: Bool) {
    value.store(mark, ordering: .relaxed)
  }
}
