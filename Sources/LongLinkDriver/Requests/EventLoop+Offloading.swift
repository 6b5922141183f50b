// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

extension EventLoop {
  /// Runs work that may block off the loop, and returns what it returned. Call it from anywhere.
  package func offloading<Value: Sendable>(
    _ work: @escaping @Sendable () -> Value
  ) async -> Value {
    let gate = Gate<Value>()
    await run { self.offload { gate.open(work()) } }
    return await gate.value
  }
}
