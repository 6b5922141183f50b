// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLinkTestSupport
import Synchronization

/// A block that a handler runs into, until the test releases it.
final class Blocking: Sendable {
  private static let all = Mutex<[Blocking]>([])

  private let number: Int
  private let held = Watched(false)
  private let gate = DispatchSemaphore(value: 0)

  private init(_ number: Int) {
    self.number = number
  }

  /// The body of the request that is to block.
  var body: [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }

  var isHeld: Bool { held.value }

  static func begin() -> Blocking {
    all.withLock { all in
      all.append(Blocking(all.count))
      return all[all.count - 1]
    }
  }

  /// Blocks the thread of a handler that has got `body`.
  static func hold(_ body: [UInt8]) {
    let blocking = all.withLock { $0[Int(body[0]) << 8 | Int(body[1])] }
    blocking.held.change { $0 = true }
    blocking.gate.wait()
  }

  func untilHeld() async { await held.until { $0 } }

  func release() { gate.signal() }
}
#endif
