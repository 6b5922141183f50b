// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) package import LongLinkTransport

extension EventLoop {
  /// Makes an idempotency key of 16 random bytes.
  package func randomKey() -> [UInt8] {
    [driver.nextRandom(), driver.nextRandom()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
  }
}
