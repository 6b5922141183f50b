// SPDX-License-Identifier: Apache-2.0

/// A value that only one loop can access, stored so that Sendable values can contain it.
///
/// Each access traps if the loop is not the current one. That is a single comparison, far cheaper
/// than the runtime's check of isolation.
@_spi(Loop)
@frozen
public struct LoopBound<Value>: @unchecked Sendable {
  @usableFromInline var storage: Value
  /// The only loop on which the value can be accessed.
  public let loop: EventLoop

  /// Binds a value to a loop. The value must not be reachable from elsewhere.
  @inlinable public init(_ value: Value, on loop: EventLoop) {
    storage = value
    self.loop = loop
  }

  /// The value. Reading or changing it traps if the caller does not run on the loop.
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
