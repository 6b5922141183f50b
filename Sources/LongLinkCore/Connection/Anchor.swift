// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A field that keeps the structure it is in from being moved about to be read.
///
/// A large structure that fits in registers as far as the compiler is concerned is copied to the
/// stack for each call of a method that only reads it. One that holds an atomic cannot be, and is
/// read where it is. The connection and the table of requests are read several times for each
/// message.
///
/// It also holds a mark, which is in memory for whoever comes back to the structure while a method
/// of it is under way.
package struct Anchor: ~Copyable, Sendable {
  private let value = Atomic(false)

  package init() {}

  /// The mark; no marks are set at first.
  var mark: Bool { value.load(ordering: .relaxed) }

  func setMark(_ mark: Bool) {
    value.store(mark, ordering: .relaxed)
  }
}
