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

  func update(_ change: (inout Value) -> Void) {
    storage.withLock(of: self) { change(&$0) }
  }
}
