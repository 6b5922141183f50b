// SPDX-License-Identifier: Apache-2.0

/// Holds what only one loop may touch, so that it can be reached from Sendable values.
///
/// Each access asks whether the loop is the current one, and traps if it is not: one comparison,
/// where the runtime's own check of isolation takes far longer.
@_spi(Loop)
@frozen
public struct LoopBound<Value>: @unchecked Sendable {
  @usableFromInline var storage: Value
  @usableFromInline let loop: EventLoop

  /// Binds a value to a loop. The value must not be reachable from elsewhere.
  @inlinable public init(_ value: Value, on loop: EventLoop) {
    storage = value
    self.loop = loop
  }

  /// The value. Traps off the loop.
  @inlinable public var value: Value {
    _read {
      loop.preconditionCurrent()
      yield storage
    }
    _modify {
      loop.preconditionCurrent()
      yield &storage
    }
  }
}
