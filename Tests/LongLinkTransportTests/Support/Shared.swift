// SPDX-License-Identifier: Apache-2.0

import Synchronization

@testable import LongLinkTransport

/// A value that closures of several threads can share.
final class Shared<Value: Sendable>: Sendable {
  private let storage: Mutex<Value>

  init(_ value: Value) {
    storage = Mutex(value)
  }

  var value: Value {
    storage.withLock(of: self) { $0 }
  }

  @discardableResult
  func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
    storage.withLock(of: self) { change(&$0) }
  }
}
