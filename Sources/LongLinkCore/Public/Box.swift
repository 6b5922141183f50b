// SPDX-License-Identifier: Apache-2.0

/// A value in memory of its own, for values that are large, rarely there, or shared.
///
/// A shared value that changes is a `Mutex` or an `Atomic`.
package final class Box<Value: ~Copyable> {
  @usableFromInline package let value: Value

  @inlinable package init(_ value: consuming Value) {
    self.value = value
  }
}

extension Box: Sendable where Value: Sendable & ~Copyable {}
